// SPDX-License-Identifier: BSD-2-Clause
/* The queue of packets, and the way of each; see mad.h. */
#include "fabric/daemon/mad/mad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/mad/impair.h"
#include "fabric/daemon/mad/rmpp_source.h"
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
	case MAD_LEAVES:
	case MAD_HELD:
		break;
	}
	return true;
}

/* Moves a packet, or all that it stands for, the whole way from where it is. */
static void packet_move(struct mad_fabric *f, struct mad_packet *p)
{
	bool there = packet_go_on(f, p);

	while (there && !p->arriving && p->stage != MAD_HELD)
		there = p->hops++ < MOST_HOPS && forward_step(f, p);
	if (!there) {
		send_packet_leaves(p);
		f->dropped += mad_packet_run(p);
		mad_packet_put(f, p);
	} else if (p->arriving) {
		f->delivered += mad_packet_run(p);
		mad_deliver(f, p);
	}
}

static bool run_is_parted(const struct mad_fabric *f, const struct mad_packet *p)
{
	return p->dlid >= MAD_LID_MULTICAST || (f->impair && !impair_is_perfect(f->impair));
}

/* Moves each packet of a run by itself, because faults of links decide its fate. */
static void run_walk(struct mad_fabric *f, struct mad_packet *p)
{
	for (uint32_t i = 0; i < p->run; i++) {
		struct mad_packet *single = mad_packet_single(f, p, i);

		if (i + 1 == p->run)
			send_packet_leaves(p);
		if (single)
			packet_move(f, single);
	}
	mad_packet_put(f, p);
}

/*
 * Makes one packet of the first 'n' of those that the first packet of the queue stands for.  False:
 * no memory.
 */
static bool queue_split(struct mad_fabric *f, uint32_t n)
{
	struct mad_packet *p = f->queue, *first = mad_packet_get(f);

	if (!first)
		return false;
	*first = *p;
	first->send = NULL;
	first->source = rmpp_source_get(p->source);
	first->run = n;
	first->next = p;
	p->run -= n;
	rmpp_segment_headers(&p->source->message, mad_get32(p->mad, MAD_AT_RMPP_SEGMENT) + n,
			     p->mad);
	f->queue = first;
	return true;
}

/* Moves at most 'most' packets; returns how many. */
static uint32_t queue_step(struct mad_fabric *f, uint32_t most)
{
	struct mad_packet *p = f->queue;
	uint32_t n;

	if (!p)
		return 0;
	if (mad_packet_run(p) > most && queue_split(f, most))
		p = f->queue;
	n = mad_packet_run(p);
	f->queue = p->next;
	if (!f->queue)
		f->queue_end = &f->queue;
	f->queued -= n;
	if (p->source && run_is_parted(f, p)) {
		run_walk(f, p);
		return n;
	}
	/* A run leaves with its last packet; only its delivery knows when that is. */
	if (!p->source)
		send_packet_leaves(p);
	packet_move(f, p);
	return n;
}

static void queue_run(struct loop *l, struct loop_work *w)
{
	struct mad_fabric *f = container_of(w, struct mad_fabric, work);

	/* Takes what is there, and an answer to each.  Otherwise the queue would grow where many
	 * programs write much, and a program that writes little would wait behind all of it. */
	uint32_t most = 2 * f->queued > BATCH ? 2 * f->queued : BATCH;

	while (most && f->queue)
		most -= min_u32(queue_step(f, most), most);
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

void mad_settle(struct mad_fabric *f)
{
	while (queue_step(f, UINT32_MAX))
		;
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
