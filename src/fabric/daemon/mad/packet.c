// SPDX-License-Identifier: BSD-2-Clause
/* The pool of packets and the queue of those that are to leave; see mad.h. */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/mad/mad.h"

#define POOL_MOST 4096u /* that are kept for later */

struct mad_packet *mad_packet_get(struct mad_fabric *f)
{
	struct mad_packet *p = f->pool;

	if (!p)
		return calloc(1, sizeof(*p));
	f->pool = p->next;
	f->pool_size--;
	memset(p, 0, sizeof(*p));
	return p;
}

void mad_packet_put(struct mad_fabric *f, struct mad_packet *p)
{
	if (f->pool_size == POOL_MOST) {
		free(p);
		return;
	}
	p->next = f->pool;
	f->pool = p;
	f->pool_size++;
}

void mad_emit(struct mad_fabric *f, struct mad_packet *p)
{
	p->next = NULL;
	*f->queue_end = p;
	f->queue_end = &p->next;
	f->queued++;
	loop_queue(f->loop, &f->work);
}

void mad_turn(struct mad_fabric *f, struct mad_packet *p)
{
	uint16_t lid = p->dlid;
	uint32_t qpn = p->dqpn;
	union ib_gid gid = p->dgid;

	p->row = net_end_port(f->net, p->row);
	p->dlid = p->slid;
	p->slid = lid;
	p->dqpn = p->sqpn;
	p->sqpn = qpn;
	p->dgid = p->sgid;
	p->sgid = gid;
	p->arriving = false;
	p->local = false;
	p->hops = 0;
	p->hop_limit = 0xff;
}
