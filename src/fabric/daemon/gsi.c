// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queue pair 1 of every port, as queue pairs of processes see it.  What they send to it becomes a
 * packet of the MAD layer, which carries it hop by hop and finds its agent; a MAD for a queue pair
 * goes to the process that owns the number.  If a port is tied to something outside of the fabric,
 * MADs go there and come from there through its carrier.  Both ways datagrams may be lost, so nobody
 * waits for a process that does not read.
 */
#include "fabric/daemon/server.h"

#include <string.h>

/* What the process says of itself is checked; what it says of the other end is found wrong on the
 * way, if it is. */
static bool datagram_is_of(const struct server *s, const struct conn *c,
			   const struct gsi_datagram *d)
{
	const struct numbers *qpns = &s->fabric->numbers[NUMBER_QPN];

	return conn_has_port(s, c, d->row) && d->qpn <= IB_QPN_MASK &&
	       qpns->owner_plus_1[d->qpn >> REGISTRY_CHUNK_SHIFT] == c->slot + 1 &&
	       d->dlid < MAD_LID_MULTICAST;
}

/* The process that carries what the port sends out of the fabric, or NULL. */
static struct conn *carrier_of(const struct server *s, uint32_t row)
{
	const struct port_end *end = &s->fabric->ends[row];

	return end->tied && end->peer == SUBNET_NONE && end->carrier_plus_1
		       ? s->by_slot[end->carrier_plus_1 - 1]
		       : NULL;
}

/* A carrier speaks for whoever is outside, to the port that it carries for. */
static bool datagram_is_from_outside(const struct server *s, const struct conn *c,
				     const struct gsi_datagram *d)
{
	const struct subnet *subnet = &s->fabric->subnet;

	return conn_has_port(s, c, d->row) && c == carrier_of(s, d->row) && d->qpn <= IB_QPN_MASK &&
	       d->grh && subnet_port_active(subnet, d->row) &&
	       subnet_port_by_gid(subnet, &d->dgid) == d->row;
}

void gsi_take(struct server *s, const struct conn *c, const struct gsi_datagram *d)
{
	struct mad_fabric *mad = &s->fabric->mad;
	bool outside = datagram_is_from_outside(s, c, d);
	struct mad_packet *p = outside || datagram_is_of(s, c, d) ? mad_packet_get(mad) : NULL;

	if (!p)
		return;
	p->row = d->row;
	p->sqpn = d->qpn;
	p->dqpn = IB_GSI_QPN;
	p->qkey = d->qkey;
	p->slid = d->slid;
	p->dlid = d->dlid;
	p->pkey = d->pkey;
	p->sl = d->sl & 15;
	p->grh = d->grh;
	p->roce_v1 = d->roce_v1;
	p->hop_limit = d->hop_limit;
	p->traffic_class = d->traffic_class;
	p->flow_label = d->flow_label;
	p->sgid = d->sgid;
	p->dgid = d->dgid;
	memcpy(p->mad, d->mad, sizeof(p->mad));
	if (outside)
		mad_arrive(mad, p);
	else
		mad_emit(mad, p);
}

static struct gsi_datagram datagram_of(const struct mad_packet *p, uint32_t row)
{
	struct gsi_datagram d = {
		.row = row,
		.qpn = p->dqpn,
		.qkey = p->qkey,
		.flow_label = p->flow_label,
		.slid = p->slid,
		.dlid = p->dlid,
		.pkey = p->pkey,
		.sl = p->sl,
		.grh = p->grh,
		.hop_limit = p->hop_limit,
		.traffic_class = p->traffic_class,
		.roce_v1 = p->roce_v1,
		.sgid = p->sgid,
		.dgid = p->dgid,
	};

	memcpy(d.mad, p->mad, sizeof(d.mad));
	return d;
}

/* The process at that port that has the number, or NULL. */
static struct conn *owner_of(const struct server *s, uint32_t qpn, uint32_t row)
{
	const struct numbers *qpns = &s->fabric->numbers[NUMBER_QPN];
	uint32_t owner_plus_1 = qpns->owner_plus_1[(qpn & IB_QPN_MASK) >> REGISTRY_CHUNK_SHIFT];
	struct conn *c = owner_plus_1 ? s->by_slot[owner_plus_1 - 1] : NULL;

	return c && conn_has_port(s, c, row) ? c : NULL;
}

/* As mad_fabric's to_queue_pair. */
static void gsi_give(void *user, const struct mad_packet *p)
{
	const struct server *s = user;
	uint32_t row = net_end_port(&s->fabric->net, p->row);
	struct conn *c = owner_of(s, p->dqpn, row);
	struct msg note;

	if (!c)
		return;
	note.gsi.datagram = datagram_of(p, row);
	msg_prepare(&note, MSG_GSI, MSG_NOTE, 0, 0);
	conn_send_lossy(c, &note);
}

/* As mad_fabric's to_outside. */
static bool gsi_carry(void *user, const struct mad_packet *p)
{
	const struct server *s = user;
	struct conn *c = carrier_of(s, p->row);
	struct msg note;

	if (!c)
		return false;
	note.gsi.datagram = datagram_of(p, p->row);
	msg_prepare(&note, MSG_GSI, MSG_NOTE, 0, 0);
	conn_send_lossy(c, &note);
	return true;
}

void gsi_open(struct server *s)
{
	s->fabric->mad.to_outside = gsi_carry;
	s->fabric->mad.to_queue_pair = gsi_give;
	s->fabric->mad.queue_pair_user = s;
}
