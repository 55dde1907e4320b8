// SPDX-License-Identifier: BSD-2-Clause
/* The queue of packets, and the way of each; see mad.h. */
#include "fabric/daemon/mad/mad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/mad/impair.h"
#include "fabric/daemon/mad/send.h"

#define MOST_HOPS 64u  /* after that many it goes in a circle */
#define BATCH	  256u /* packets before descriptors have their turn, if no more were queued */

static bool packet_go_on(struct mad_fabric *f, struct mad_packet *p)
{
	switch (p->stage) {
	case MAD_STARTS:
		return forward_start(f, p);
	case MAD_ENTERS:
		return forward_enter(f, p);
	case MAD_ARRIVES:
		forward_arrive(f, p);
		break;
	case MAD_LEAVES:
	case MAD_HELD:
	case MAD_OUTSIDE:
		break;
	}
	return true;
}

/* Moves a packet the whole way from where it is. */
static void packet_move(struct mad_fabric *f, struct mad_packet *p)
{
	bool there = packet_go_on(f, p);

	/* Before it arrives, because then an answer may come. */
	send_packet_leaves(p);
	while (there && !p->arriving && p->stage != MAD_HELD && p->stage != MAD_OUTSIDE)
		there = p->hops++ < MOST_HOPS && forward_step(f, p);
	if (!there) {
		f->dropped++;
		mad_packet_put(f, p);
	} else if (p->stage == MAD_OUTSIDE) {
		f->delivered++;
		mad_packet_put(f, p);
	} else if (p->arriving) {
		f->delivered++;
		mad_deliver(f, p);
	}
}

/* Moves the first packet of the queue; false: there is none. */
static bool queue_step(struct mad_fabric *f)
{
	struct mad_packet *p = f->queue;

	if (!p)
		return false;
	f->queue = p->next;
	if (!f->queue)
		f->queue_end = &f->queue;
	f->queued--;
	packet_move(f, p);
	return true;
}

static void queue_run(struct loop *l, struct loop_work *w)
{
	struct mad_fabric *f = container_of(w, struct mad_fabric, work);

	/* Takes what is there, and an answer to each.  Otherwise the queue would grow where many
	 * programs write much, and a program that writes little would wait behind all of it. */
	uint32_t most = 2 * f->queued > BATCH ? 2 * f->queued : BATCH;

	while (most-- && queue_step(f))
		;
	/* Packets that became answers have queued the work, and have moved already. */
	if (f->queue)
		loop_queue(l, w);
	else
		loop_unqueue(l, w);
	if (f->after) {
		loop_unqueue(l, f->after);
		f->after->run(l, f->after);
	}
}

int mad_open(struct mad_fabric *f, struct net *net, struct loop *loop)
{
	memset(f, 0, sizeof(*f));
	f->net = net;
	f->loop = loop;
	f->work.run = queue_run;
	f->queue_end = &f->queue;
	f->next_tid = 1;
	f->of_port = calloc(net->nports ? net->nports : 1, sizeof(struct mad_agent *));
	return f->of_port ? 0 : -ENOMEM;
}

void mad_close(struct mad_fabric *f)
{
	if (!f->net)
		return;
	loop_unqueue(f->loop, &f->work);
	impair_close(f->impair);
	while (f->queue) {
		struct mad_packet *p = f->queue;

		f->queue = p->next;
		mad_packet_put(f, p);
	}
	while (f->pool) {
		struct mad_packet *p = f->pool;

		f->pool = p->next;
		free(p);
	}
	sends_close(f);
	free(f->receives);
	free(f->by_tid);
	free(f->of_port);
	f->net = NULL;
}

void mad_port_agent(struct mad_fabric *f, unsigned class, struct port_agent *a)
{
	f->port_agents[class] = a;
}
