// SPDX-License-Identifier: BSD-2-Clause
/* The adapter as a whole: its run queue, its timers, and the packets that arrive. */
#include "adapter/adapter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/core/device.h"
#include "adapter/ethernet/ethernet.h"
#include "adapter/transport/icm_writer.h"
#include "adapter/ethernet/raw.h"
#include "adapter/memory/mkey.h"
#include "adapter/qp/flow.h"
#include "adapter/qp/qp_explain.h"
#include "adapter/qp/qp.h"
#include "adapter/qp/path.h"
#include "adapter/transport/completer.h"
#include "adapter/transport/dc.h"
#include "adapter/transport/multicast.h"
#include "adapter/transport/path_migration.h"
#include "adapter/transport/requester.h"
#include "adapter/transport/responder.h"
#include "base/clock.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "wire/pkt.h"

/* If nobody polls, a queue that found the wire busy tries again after this time. */
#define BUSY_RETRY_NS 20000u

/* An adapter, with the parts whose inside other folders know. */
struct whole {
	struct adapter adapter;
	struct multicast multicast;
	struct ethernet ethernet;
	struct null_mkey null_mkey;
};

/* ---- progress ---- */

/* True if it is time to look at the clock.  A poll takes much less time than any timer, so pollers
 * look only now and then. */
static bool time_to_look(struct adapter *a)
{
	uint32_t polls = atomic_load_explicit(&a->polls, memory_order_relaxed) + 1;

	atomic_store_explicit(&a->polls, polls, memory_order_relaxed);
	return polls % 32 == 0;
}

bool adapter_progress(struct adapter *a, uint64_t *deadline_ns)
{
	bool any = runq_wake_later(&a->runq);

	if (unlikely(timers_next(&a->timers) != TIMER_NEVER) && (deadline_ns || time_to_look(a)))
		any |= timers_run(&a->timers, clock_ns());
	if (runq_ready(&a->runq)) {
		adapter_run(a);
		any = true;
	}
	if (!deadline_ns)
		return any;
	*deadline_ns = min_u64(*deadline_ns, timers_next(&a->timers));
	if (runq_waiting(&a->runq))
		*deadline_ns = min_u64(*deadline_ns, clock_ns() + BUSY_RETRY_NS);
	return any;
}

void adapter_batch_end(struct adapter *a)
{
	atomic_store_explicit(&a->frames, 0, memory_order_relaxed);
	if (atomic_load_explicit(&a->prompt, memory_order_relaxed)) {
		atomic_store_explicit(&a->prompt, false, memory_order_relaxed);
		adapter_run(a);
	}
}

bool adapter_owes(const struct adapter *a)
{
	return runq_ready(&a->runq) || runq_waiting(&a->runq);
}

bool adapter_few_receives(struct adapter *a)
{
	return atomic_load_explicit(&a->few_receives, memory_order_relaxed) &&
	       atomic_exchange_explicit(&a->few_receives, false, memory_order_relaxed);
}

bool adapter_has_received(struct adapter *a)
{
	return atomic_load_explicit(&a->received, memory_order_relaxed) &&
	       atomic_exchange_explicit(&a->received, false, memory_order_relaxed);
}

/* ---- packets ---- */

/* True if the packet has waited in a queue that is too long. */
static __attribute__((noinline, cold)) bool adapter_marks(struct adapter *a, const struct pkt *pkt)
{
	struct congestion *c = &a->congestion;
	uint64_t now = clock_ns(), gone, gained;
	bool marks;

	spin_lock(&c->lock);
	gone = min_u64(now - c->filled_ns, 1000000000u);
	gained = gone * c->bytes_per_second / 1000000000u;
	if (gained)
		c->filled_ns = now;
	c->bytes -= min_u64(c->bytes, gained);
	c->bytes += pkt_wire_octets(pkt, a->port->ethernet);
	marks = c->bytes > c->mark_bytes;
	/* A real queue would have lost the packet by then. */
	c->bytes = min_u64(c->bytes, 2 * c->mark_bytes + c->bytes_per_second / 100);
	spin_unlock(&c->lock);
	return marks;
}

static __attribute__((cold)) void adapter_drop(struct adapter *a, const struct pkt *pkt,
					       const char *why, const char *explanation)
{
	trace(packet, dropped, pkt->dqpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn, why);
	if (explaining())
		qp_explain_stray(a, pkt, explanation);
}

/*
 * Takes a packet of a connection from outside the fabric, which does not say who sent it.  If its
 * addresses are those of the connection (IBTA 9.6.1.5), it is from the peer.
 */
static __attribute__((noinline, cold)) bool
adapter_peer_outside(const struct qp *qp, const struct pkt *pkt, struct pkt *out, struct path *path)
{
	if (pkt_transport(pkt) == BTH_UD)
		return false;
	if (!path_has_gids_of(pkt->path, &qp->path) &&
	    (qp_is_migrated(qp) || !migration_has_addresses(qp, pkt->path)))
		return false;
	*path = *pkt->path;
	path->src_port = qp->path.dst_port;
	*out = *pkt;
	out->path = path;
	out->sqpn = qp->attr.dest_qpn;
	return true;
}

/* True if a router on the way from another machine has marked the packet; within a fabric there is
 * none. */
static bool packet_is_marked(const struct pkt *pkt)
{
	return unlikely(pkt->path->src_port == SUBNET_NONE) &&
	       (pkt->path->traffic_class & IP_ECN) == IP_ECN_MARKED;
}

static void adapter_receive(void *user, const struct pkt *pkt)
{
	struct adapter *a = user;
	struct path path;
	struct pkt peer;
	struct qp *qp;

	hazard_enter();
	qp = number_find(&a->qps, pkt->dqpn);
	if (unlikely(pkt->sqpn == PKT_SQPN_UNKNOWN) && qp) {
		if (!adapter_peer_outside(qp, pkt, &peer, &path)) {
			adapter_drop(a, pkt, "not-from-peer",
				     "its addresses are not those of the QP's connection");
			goto leave;
		}
		pkt = &peer;
	}
	if (unlikely(a->congestion.bytes_per_second) && qp && pkt_transport(pkt) == qp->bth &&
	    pkt_props(pkt)->request && adapter_marks(a, pkt))
		flow_congested(qp, pkt);
	if (likely(qp && pkt_transport(pkt) == qp->bth)) {
		if (packet_is_marked(pkt))
			flow_congested(qp, pkt);
		if (pkt_props(pkt)->response)
			completer_receive(qp, pkt);
		else if (unlikely(qp->bth == BTH_DC))
			dct_receive(qp, pkt);
		else if (pkt_props(pkt)->request)
			responder_receive(qp, pkt);
	} else if (qp && pkt_transport(pkt) == BTH_CNP) {
		flow_receive(qp, pkt);
	} else {
		adapter_drop(a, pkt, qp ? "transport" : "no-such-qp",
			     qp ? "the QP is of another type than the packet's sender"
				: "there is no QP of this number (any more)");
	}
leave:
	hazard_leave();
}

static uint32_t adapter_receive_short_sends(void *user, const struct short_send *b)
{
	struct adapter *a = user;
	struct qp *qp = number_find(&a->qps, b->dqpn);

	return likely(qp) ? responder_receive_short_sends(qp, b) : 0;
}

static bool adapter_receive_group(void *user, const struct pkt *pkt)
{
	struct adapter *a = user;

	switch (pkt_transport(pkt)) {
	case BTH_RAW:
		if (!a->port->ethernet)
			return false;
		/* A queue of this device has done so already before it sent the frame. */
		if (pkt->batched || pkt->path->src_port != wire_port_row(a->wire))
			icm_writers_run(a);
		return raw_receive(a, pkt);
	case BTH_UD:
		return pkt_props(pkt)->request && multicast_receive(a, pkt);
	default:
		return false;
	}
}

static void adapter_sniff(void *user, const struct pkt *pkt)
{
	raw_sniff(user, pkt);
}

/* ---- life ---- */

static void adapter_wake_at(void *user, uint64_t deadline_ns)
{
	struct adapter *a = user;

	timer_arm(&a->timers, &a->late, deadline_ns);
}

static void adapter_late(struct timer *t)
{
	struct adapter *a = container_of(t, struct adapter, late);

	wire_deliver_late(a->wire);
}

static void adapter_kick(void *user)
{
	struct adapter *a = user;

	if (a->attr.kick)
		a->attr.kick(a->attr.user);
}

static void adapter_run_qp(struct run_entry *e)
{
	struct qp *qp = container_of(e, struct qp, run);

	qp_continue(qp);
	qp_run(qp);
}

int adapter_create(const struct adapter_attr *attr, struct adapter **out)
{
	struct wire_client client = {.receive = adapter_receive,
				     .receive_group = adapter_receive_group,
				     .sniff = adapter_sniff,
				     .receive_short_sends = adapter_receive_short_sends,
				     .wake_at = adapter_wake_at};
	struct whole *w = calloc(1, sizeof(*w));
	struct adapter *a;

	if (!w)
		return -ENOMEM;
	a = &w->adapter;
	client.user = a;
	a->attr = *attr;
	if (!a->attr.domains) {
		a->own_domains = domains_create();
		if (!a->own_domains) {
			free(w);
			return -ENOMEM;
		}
		a->attr.domains = a->own_domains;
	}
	a->wire = attr->wire;
	a->ports = wire_subnet(a->wire)->ports;
	a->port = &a->ports[wire_port_row(a->wire)];
	a->remotes = wire_remotes(a->wire);
	a->epoch = &wire_subnet(a->wire)->head->epoch;
	a->counters = wire_counters(a->wire);
	a->traffic = wire_traffic(a->wire);
	a->observers = wire_observers(a->wire);
	a->slots = wire_slots(a->wire);
	a->slot = wire_slot(a->wire);
	a->flows_by = &a->slots[a->slot].flows_by[a->port->host_index];
	atomic_store(&a->next_cqn, 0x80);
	a->runq = (struct runq){.run = adapter_run_qp, .kick = adapter_kick, .user = a};
	timers_init(&a->timers, adapter_kick, a);
	a->late.fire = adapter_late;
	a->payload_lost = qp_payload_lost;
	number_space_init(&a->qps);
	number_space_init(&a->srqs);
	number_space_init(&a->mkeys);
	number_space_init(&a->psvs);
	a->null_mkey = &w->null_mkey;
	null_mkey_init(a->null_mkey);
	reserve_init(&a->reserve);
	stage_init(&a->stage);
	a->multicast = &w->multicast;
	multicast_init(a->multicast);
	a->ethernet = &w->ethernet;
	ethernet_init(a->ethernet);
	qp_form_expose(a->wire);
	cq_form_expose(a->wire);
	srq_form_expose(a->wire);
	wire_attach(a->wire, &client);
	*out = a;
	return 0;
}

void adapter_congest(struct adapter *a, uint64_t bytes_per_second, uint64_t mark_bytes)
{
	a->congestion.bytes_per_second = bytes_per_second;
	a->congestion.mark_bytes = mark_bytes;
}

void adapter_destroy(struct adapter *a)
{
	const struct wire_client nobody = {0};

	wire_attach(a->wire, &nobody);
	timer_retire(&a->timers, &a->late);
	hazard_wait_all();
	number_space_release(&a->qps);
	number_space_release(&a->srqs);
	number_space_release(&a->mkeys);
	number_space_release(&a->psvs);
	null_mkey_release(a->null_mkey);
	reserve_release(&a->reserve);
	stage_release(&a->stage);
	multicast_release(a->multicast);
	ethernet_release(a->ethernet);
	if (a->own_domains)
		domains_destroy(a->own_domains);
	free(container_of(a, struct whole, adapter));
}
