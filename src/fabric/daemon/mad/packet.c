// SPDX-License-Identifier: BSD-2-Clause
/* The pool of packets and the queue of those that are to leave; see mad.h. */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/mad/mad.h"

#define POOL_MOST 4096u /* how many are kept for later */

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

void mad_requeue(struct mad_fabric *f, struct mad_packet *p)
{
	p->next = NULL;
	*f->queue_end = p;
	f->queue_end = &p->next;
	f->queued++;
	loop_queue(f->loop, &f->work);
}

void mad_emit(struct mad_fabric *f, struct mad_packet *p)
{
	p->stage = MAD_STARTS;
	mad_requeue(f, p);
}

void mad_arrive(struct mad_fabric *f, struct mad_packet *p)
{
	p->stage = MAD_ARRIVES;
	mad_requeue(f, p);
}

/* Returns the LID that an answer comes from: the LID that was asked, if it belongs to one port. */
static uint16_t packet_answer_lid(const struct mad_fabric *f, const struct mad_packet *p)
{
	const struct subnet_port *port = &f->net->subnet->ports[p->row];

	if (p->dlid < MAD_LID_MULTICAST || mad_is_directed(p->mad))
		return p->dlid;
	return (uint16_t)atomic_load_explicit(&port->lid, memory_order_relaxed);
}

void mad_turn(struct mad_fabric *f, struct mad_packet *p)
{
	uint32_t qpn = p->dqpn;
	union ib_gid gid = p->dgid;
	uint16_t lid;

	p->row = net_end_port(f->net, p->row);
	lid = packet_answer_lid(f, p);
	p->dlid = p->slid;
	p->slid = lid;
	p->dqpn = p->sqpn;
	p->sqpn = qpn;
	/* With the key of this port, which may be a full member where the asker is a limited one. */
	if (qpn)
		p->pkey = subnet_pkey(&f->net->subnet->ports[p->row], p->pkey_index);
	p->dgid = p->sgid;
	p->sgid = gid;
	p->arriving = false;
	p->local = false;
	p->hops = 0;
	p->hop_limit = 0xff;
}
