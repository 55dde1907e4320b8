// SPDX-License-Identifier: BSD-2-Clause
/* See flow.h.  A bucket of bytes keeps the rate: time fills it, and each packet empties it. */
#include "adapter/qp/flow.h"

#include "adapter/qp/path.h"
#include "base/clock.h"
#include "base/trace.h"
#include "wire/counter_shard.h"
#include "wire/flow_control.h"
#include "wire/inbox.h"
#include "wire/pkt.h"

#define NS 1000000000u
/* After a pause, as much may go at once as the rate allows in this time. */
#define BURST_NS 1000000u
/* How often a waiting flow looks at its rate, which may have risen. */
#define LOOK_NS 2000000u
/* The controlling process hears of what was sent after this many bytes, if not before. */
#define TELL_BYTES (64u << 10)
/* A receiver notifies a flow at most this often (mlx5's np_min_time_between_cnps is at least
 * 4 us). */
#define CNP_APART_NS 50000u

/* The opcode of probes, which is for manufacturers. */
#define OP_PROBE (BTH_CNP | BTH_FETCH_ADD)
/* The remote key of a probe says whether it is on its way back. */
enum probe_way { PROBE_OUT, PROBE_BACK };

static struct slot *own_slot(const struct qp *qp)
{
	return &wire_slots(qp->adapter->wire)[qp->adapter->slot];
}

/* ---- telling the process that controls it ---- */

static void flow_tell(struct qp *qp, enum flow_event event)
{
	struct slot_flow *row = flow_row(qp);
	struct slot *own = own_slot(qp), *to;
	uint64_t by = atomic_load(qp->adapter->flows_by);
	uint32_t n;

	if (!row || !by)
		return;
	if (atomic_fetch_or(&row->happened, 1u << event) >> event & 1)
		return;
	n = (uint32_t)(row - own->flows);
	atomic_fetch_or(&own->flows_happened[n / 64], 1ull << n % 64);
	to = flow_control_slot(wire_slots(qp->adapter->wire), by);
	if (to)
		inbox_raise_flows(to, qp->adapter->slot);
}

static void flow_began(struct slot_flow *row)
{
	uint64_t none = 0;

	(void)atomic_compare_exchange_strong(&row->first_ns, &none, clock_ns());
}

/* ---- rows ---- */

/* Takes a free row of the slot; NULL: there is none. */
static struct slot_flow *row_take(const struct qp *qp)
{
	struct slot *own = own_slot(qp);

	for (uint32_t i = 0; i < SLOT_FLOWS; i++) {
		struct slot_flow *row = &own->flows[(qp->qpn + i) % SLOT_FLOWS];
		uint32_t free = 0;

		if (atomic_load_explicit(&row->qpn, memory_order_relaxed) ||
		    !atomic_compare_exchange_strong(&row->qpn, &free, qp->qpn))
			continue;
		atomic_store(&row->entry_plus_1, 0);
		atomic_store(&row->happened, 0);
		atomic_store(&row->sent, 0);
		atomic_store(&row->cnps, 0);
		atomic_store(&row->nacks, 0);
		atomic_store(&row->rate, 0);
		atomic_store(&row->probes, 0);
		atomic_store(&row->first_ns, 0);
		atomic_store(&row->port, qp->adapter->port->host_index);
		atomic_fetch_add(&row->begun, 1);
		return row;
	}
	return NULL;
}

void flow_end(struct qp *qp)
{
	struct slot_flow *row = atomic_exchange(&qp->flow.row, NULL);

	timer_disarm(&qp->flow.timer);
	atomic_store(&qp->flow.waits, false);
	if (row)
		atomic_store(&row->qpn, 0);
}

/* Makes sure that the queue pair has a row.  False: nobody controls it, or no row is left. */
static bool flow_begin(struct qp *qp, uint64_t by)
{
	struct slot_flow *row = flow_row(qp);

	if (unlikely(!flow_control_slot(wire_slots(qp->adapter->wire), by))) {
		flow_control_forget(own_slot(qp), qp->adapter->port->host_index, by);
		flow_end(qp);
		return false;
	}
	if (likely(row && qp->flow.by == by))
		return true;
	flow_end(qp);
	row = row_take(qp);
	if (!row)
		return false;
	qp->flow.credit = 0;
	qp->flow.filled_ns = clock_ns();
	qp->flow.untold = 0;
	qp->flow.probed = 0;
	qp->flow.by = by;
	atomic_store(&qp->flow.row, row);
	trace(flow, begin, qp->qpn, qp->attr.dest_qpn);
	return true;
}

/* ---- the rate ---- */

static uint64_t flow_bytes_per_second(const struct qp *qp, uint32_t rate)
{
	uint64_t bytes = subnet_port_bytes_per_second(qp->adapter->port) * rate >> FLOW_RATE_BITS;

	return bytes ? bytes : 1;
}

static bool flow_has_credit(struct qp *qp, uint64_t per_second, uint64_t now)
{
	uint64_t gone = min_u64(now - qp->flow.filled_ns, NS), gained = gone * per_second / NS;
	int64_t most = (int64_t)max_u64(per_second * BURST_NS / NS, ib_mtu_bytes(IB_MTU_4096));

	/* The time for less than a byte counts in the next round. */
	if (gained) {
		qp->flow.credit += (int64_t)gained;
		qp->flow.filled_ns = now;
	}
	if (qp->flow.credit > most)
		qp->flow.credit = most;
	return qp->flow.credit >= 0;
}

/* False: the packet has to wait for *wait ns. */
static bool flow_may_go(struct qp *qp, uint64_t *now, uint64_t *wait)
{
	uint32_t rate = atomic_load_explicit(&flow_row(qp)->rate, memory_order_relaxed);
	uint64_t per_second;

	*now = clock_ns();
	if (!rate || rate >> FLOW_RATE_BITS) {
		qp->flow.credit = 0;
		qp->flow.filled_ns = *now;
		return true;
	}
	per_second = flow_bytes_per_second(qp, rate);
	if (flow_has_credit(qp, per_second, *now))
		return true;
	*wait = (uint64_t)-qp->flow.credit * NS / per_second + 1;
	return false;
}

bool flow_admit(struct qp *qp, const struct pkt *pkt)
{
	uint64_t by = atomic_load_explicit(qp->adapter->flows_by, memory_order_relaxed), now, wait;

	if (likely(!by)) {
		if (unlikely(flow_row(qp)))
			flow_end(qp);
		return true;
	}
	if (!qp_is_direct(qp) || !pkt_props(pkt)->request || !flow_begin(qp, by))
		return true;
	if (flow_may_go(qp, &now, &wait)) {
		atomic_store_explicit(&qp->flow.waits, false, memory_order_relaxed);
		return true;
	}
	atomic_store(&qp->flow.waits, true);
	timer_arm(&qp->adapter->timers, &qp->flow.timer, now + min_u64(wait, LOOK_NS));
	return false;
}

void flow_due(struct timer *t)
{
	qp_kick(container_of(container_of(t, struct qp_flow, timer), struct qp, flow));
}

/* ---- probes ---- */

static void probe_send(struct qp *qp)
{
	const struct pkt probe = {
		.opcode = OP_PROBE,
		.pkey = qp->pkey,
		.dqpn = qp->attr.dest_qpn,
		.sqpn = qp->qpn,
		.npkts = 1,
		.path = &qp->path,
		.rkey = PROBE_OUT,
		.va = clock_ns(),
	};

	(void)wire_xmit(qp->adapter->wire, &probe);
}

static void probe_answer(struct qp *qp, const struct pkt *probe)
{
	struct path back;
	struct pkt answer = {
		.opcode = OP_PROBE,
		.pkey = qp->pkey,
		.dqpn = probe->sqpn,
		.sqpn = qp->qpn,
		.npkts = 1,
		.path = &back,
		.rkey = PROBE_BACK,
		.va = probe->va,
		.compare = clock_ns(),
	};

	path_reverse(probe->path, &back);
	answer.swap_add = clock_ns();
	(void)wire_xmit(qp->adapter->wire, &answer);
}

static void probe_is_back(struct qp *qp, const struct pkt *probe)
{
	struct slot_flow *row = flow_row(qp);

	if (!row)
		return;
	atomic_store(&row->probe_sent_ns, probe->va);
	atomic_store(&row->probe_received_ns, probe->compare);
	atomic_store(&row->probe_answered_ns, probe->swap_add);
	atomic_store(&row->probe_back_ns, clock_ns());
	flow_tell(qp, FLOW_RTT);
}

/* ---- what happens ---- */

void flow_sent(struct qp *qp, const struct pkt *pkt)
{
	struct slot_flow *row = flow_row(qp);
	uint32_t bytes = (uint32_t)pkt_wire_octets(pkt, qp->adapter->port->ethernet), probes;
	bool first;

	if (!row || !pkt_props(pkt)->request)
		return;
	first = !atomic_load_explicit(&row->first_ns, memory_order_relaxed);
	if (first)
		flow_began(row);
	qp->flow.credit -= bytes;
	qp->flow.untold += bytes;
	atomic_fetch_add(&row->sent, (uint64_t)pkt->npkts << FLOW_SENT_BITS | bytes);
	if (first || qp->flow.untold >= TELL_BYTES) {
		qp->flow.untold = 0;
		flow_tell(qp, FLOW_TX);
	}
	probes = atomic_load_explicit(&row->probes, memory_order_relaxed);
	if (unlikely(probes != qp->flow.probed)) {
		qp->flow.probed = probes;
		probe_send(qp);
	}
}

void flow_paused(struct qp *qp)
{
	if (!qp->flow.untold)
		return;
	qp->flow.untold = 0;
	flow_tell(qp, FLOW_TX);
}

void flow_refused(struct qp *qp, enum flow_nack kind)
{
	struct slot_flow *row = flow_row(qp);

	if (likely(!row))
		return;
	flow_began(row);
	atomic_store(&row->nack_kind, kind);
	atomic_fetch_add(&row->nacks, 1);
	flow_tell(qp, FLOW_NACK);
}

static void cnp_receive(struct qp *qp)
{
	struct slot_flow *row = flow_row(qp);

	if (!row && !wire_leads_out(qp->adapter->wire, &qp->path))
		return;
	shard_count(qp->adapter->counters, HW_RP_CNP_HANDLED, 1);
	if (!row) {
		spin_lock(&qp->comp.lock);
		qp_window_shrink(qp);
		spin_unlock(&qp->comp.lock);
		return;
	}
	flow_began(row);
	atomic_fetch_add(&row->cnps, 1);
	flow_tell(qp, FLOW_CNP);
}

void flow_receive(struct qp *qp, const struct pkt *pkt)
{
	if (!qp_is_direct(qp) || !qp_is_peer(qp, pkt->path->src_port, pkt->sqpn))
		return;
	if (pkt->opcode == BTH_CONGESTION)
		cnp_receive(qp);
	else if (pkt->opcode == OP_PROBE && pkt->rkey == PROBE_OUT)
		probe_answer(qp, pkt);
	else if (pkt->opcode == OP_PROBE && pkt->rkey == PROBE_BACK)
		probe_is_back(qp, pkt);
}

void flow_congested(struct qp *qp, const struct pkt *pkt)
{
	uint64_t now = clock_ns();
	struct path back;
	const struct pkt cnp = {
		.opcode = BTH_CONGESTION,
		.migreq_clear = true,
		.pkey = qp->pkey,
		.dqpn = pkt->sqpn,
		.sqpn = qp->qpn,
		.npkts = 1,
		.path = &back,
	};

	shard_count(qp->adapter->counters, HW_NP_ECN_MARKED, 1);
	if (!qp_is_direct(qp) || now - qp->flow.cnp_ns < CNP_APART_NS)
		return;
	qp->flow.cnp_ns = now;
	path_reverse(pkt->path, &back);
	back.traffic_class &= (uint8_t)~IP_ECN;
	if (wire_xmit(qp->adapter->wire, &cnp) == WIRE_SENT)
		shard_count(qp->adapter->counters, HW_NP_CNP_SENT, 1);
}
