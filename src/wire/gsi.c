// SPDX-License-Identifier: BSD-2-Clause
/* See gsi.h. */
#include "wire/gsi.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "prm/mad.h"
#include "wire/counter_shard.h"
#include "wire/inbox.h"
#include "wire/pkt.h"
#include "wire/payload.h"
#include "wire/process.h"

void gsi_close(struct gsi *g)
{
	free(g->waiting);
}

/* ---- to queue pair 1 ---- */

/* Why the packet cannot be a MAD for queue pair 1, or is lost at its own port; NULL: it is one. */
static const char *gsi_refuses(const struct wire *w, const struct pkt *p)
{
	if (!subnet_port_active(w->process->attr.subnet, w->port_row))
		return "port-down";
	/* Queue pair 0 takes SMPs, which only another queue pair 0 may send. */
	if (p->dqpn != IB_GSI_QPN)
		return "not-to-smi";
	if (pkt_transport(p) != BTH_UD || p->payload_len > MAD_BYTES || !w->process->attr.send_gsi)
		return "not-to-gsi";
	return NULL;
}

static struct gsi_datagram datagram_of(const struct wire *w, const struct pkt *p)
{
	const struct path *path = p->path;

	return (struct gsi_datagram){
		.row = w->port_row,
		.qpn = p->sqpn,
		.qkey = p->qkey,
		.flow_label = path->flow_label,
		.slid = path->slid,
		.dlid = path->dlid,
		.pkey = p->pkey,
		.sl = path->sl,
		.grh = path->grh,
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.roce_v1 = path->roce_v1,
		.sgid = path->sgid,
		.dgid = path->dgid,
	};
}

static enum wire_verdict gsi_lost(struct wire *w, const struct pkt *p, const char *why)
{
	trace(packet, lost, p->sqpn, p->dqpn, bth_op_name(p->opcode), p->psn, why);
	shard_count(w->counters, PORT_XMIT_DISCARDS, pkt_wire_packets(p));
	return WIRE_LOST;
}

static enum wire_verdict gsi_send(struct wire *w, const struct gsi_datagram *d, const struct pkt *p)
{
	struct wire_process *h = w->process;

	return h->attr.send_gsi(h->attr.user, d) ? WIRE_SENT : gsi_lost(w, p, "not-to-gsi");
}

/* The same, and shows the datagram to who observes us. */
static __attribute__((cold)) enum wire_verdict
gsi_send_observed(struct wire *w, const struct gsi_datagram *d, const struct pkt *p)
{
	_Atomic(uint64_t) *since = sending_begin(w->process->slot);
	uint64_t ns = clock_realtime_ns();
	enum wire_verdict verdict = gsi_send(w, d, p);

	if (verdict == WIRE_SENT)
		tap_packet(w, TAP_SENT, ns, p);
	sending_end(since);
	return verdict;
}

enum wire_verdict gsi_xmit(struct wire *w, const struct pkt *p)
{
	struct wire_process *h = w->process;
	const char *refused = gsi_refuses(w, p);
	struct gsi_datagram d;
	struct run mad = {d.mad, p->payload_len};
	enum wire_verdict verdict;

	if (refused)
		return gsi_lost(w, p, refused);
	d = datagram_of(w, p);
	if (p->payload_len && !payload_pull(&mad, 1, p))
		return WIRE_FAULT;
	verdict = slot_observed(h->slot) ? gsi_send_observed(w, &d, p) : gsi_send(w, &d, p);
	if (verdict != WIRE_SENT)
		return verdict;
	if (unlikely(p->qkey != MAD_QKEY_WELL_KNOWN) && explaining())
		packet_explain_gsi_key(h->attr.subnet, w->port_row, p);
	return WIRE_SENT;
}

/* ---- from queue pair 1 ---- */

void wire_process_take_gsi(struct wire_process *h, const struct gsi_datagram *d)
{
	struct gsi *g = &h->gsi;
	bool taken = false;

	if (!g->waiting)
		g->waiting = malloc(GSI_WAITING_MOST * sizeof(*g->waiting));
	if (!g->waiting)
		return;
	spin_lock(&g->lock);
	if (g->taken - g->given < GSI_WAITING_MOST) {
		g->waiting[g->taken++ % GSI_WAITING_MOST] = *d;
		taken = true;
	}
	spin_unlock(&g->lock);
	if (taken)
		inbox_raise_gsi(h->slot);
}

static bool gsi_next(struct gsi *g, struct gsi_datagram *d)
{
	bool there;

	spin_lock(&g->lock);
	there = g->taken != g->given;
	if (there)
		*d = g->waiting[g->given++ % GSI_WAITING_MOST];
	spin_unlock(&g->lock);
	return there;
}

static uint32_t sender_of(const struct subnet *s, const struct gsi_datagram *d)
{
	return s->ports[d->row].ethernet ? subnet_port_by_gid(s, &d->sgid)
					 : subnet_port_by_lid(s, d->slid);
}

/* In a process that carries what the port sends out of the fabric, the datagram goes on. */
static void gsi_carry(const struct wire_client *client, struct path *path, const struct pkt *p)
{
	path->src_port = path->dst_port;
	path->dst_port = SUBNET_NONE;
	if (client->carry)
		client->carry(client->user, p);
}

static void gsi_deliver_to(struct wire *w, const struct gsi_datagram *d)
{
	const struct wire_client *client = atomic_load_explicit(&w->client, memory_order_acquire);
	const struct subnet *s = w->process->attr.subnet;
	/* The receiver only reads the payload, although a run has no const. */
	struct run mad = {(void *)(uintptr_t)d->mad, sizeof(d->mad)};
	struct path path = {
		.src_port = sender_of(s, d),
		.dst_port = d->row,
		.slid = d->slid,
		.dlid = d->dlid,
		.sl = d->sl,
		.hop_limit = d->hop_limit,
		.traffic_class = d->traffic_class,
		.flow_label = d->flow_label,
		.grh = d->grh,
		.roce_v1 = d->roce_v1,
		.sgid = d->sgid,
		.dgid = d->dgid,
	};
	const struct pkt p = {
		.opcode = BTH_UD | BTH_SEND_ONLY,
		.pkey = d->pkey,
		.dqpn = d->qpn,
		.sqpn = IB_GSI_QPN,
		.qkey = d->qkey,
		.npkts = 1,
		.path = &path,
		.payload_len = sizeof(d->mad),
		.nruns = 1,
		.runs = &mad,
	};

	if (!client || !subnet_port_active(s, w->port_row))
		return;
	if (w->process->attr.carries) {
		gsi_carry(client, &path, &p);
		return;
	}
	if (slot_observed(w->process->slot))
		tap_packet(w, TAP_DELIVERED, 0, &p);
	client->receive(client->user, &p);
}

bool gsi_deliver(struct wire_process *h)
{
	struct gsi_datagram d;
	struct wire *w;
	uint32_t n = 0;

	/* Clear the mark first, as in inbox_collect. */
	atomic_fetch_and(&h->slot->inbox_summary, ~INBOX_GSI);
	for (; n < GSI_WAITING_MOST && gsi_next(&h->gsi, &d); n++) {
		hazard_enter();
		w = wire_process_wire(h, d.row);
		if (w)
			gsi_deliver_to(w, &d);
		hazard_leave();
	}
	/* Others have their turn before what may have come meanwhile. */
	if (n == GSI_WAITING_MOST)
		atomic_fetch_or(&h->slot->inbox_summary, INBOX_GSI);
	return n;
}
