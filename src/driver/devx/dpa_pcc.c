// SPDX-License-Identifier: BSD-2-Clause
/*
 * See dpa.h.  Layouts are those of libflexio-dev/flexio_dev_pcc.h.  Of what device code writes
 * there, this file believes only the ring's consumer index.
 *
 * Rows of flows lie in the slots of their processes.  An entry of the table stands for a row, and
 * its index is the flow's number in doorbells.
 */
#include "driver/devx/dpa.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/spin.h"
#include "wire/flow_control.h"
#include "wire/wire.h"

#define PCC_VERSION 1u
#define PCC_FLOWS   1024u
#define PCC_EVENTS  1024u
#define PCC_WORDS   12u

/* Which events follow, as the doorbell says. */
enum pcc_next { PCC_SINGLE, PCC_MULTIPLE, PCC_FW };

struct pcc_table {
	uint32_t version;
	uint32_t flow_entries, event_entries;
	uint32_t reserved;
	uint64_t flows, events; /* addresses in the process */
	uint64_t bytes_per_second;
	_Atomic(uint64_t) produced;
	_Atomic(uint64_t) consumed; /* the program writes it */
	uint64_t reserved_too;
};

struct pcc_flow {
	uint32_t data[PCC_WORDS]; /* belongs to the program */
	uint32_t tag, qpn, rate;
	uint32_t reserved;
};

struct pcc_event {
	uint8_t type, subtype, port, flags;
	uint32_t tag;
	uint32_t number; /* counts the flow's events */
	uint32_t timestamp;
	uint32_t first_timestamp; /* or when the probe was sent */
	uint32_t counts;	  /* or when the probe arrived */
	uint32_t qpn;		  /* or when it was answered */
	uint32_t reserved;
	uint16_t flow;
	uint16_t function;
	uint32_t flow_qpn;
	uint32_t sent_bytes, sent_packets;
	uint32_t reserved_too[4];
};

static_assert(sizeof(struct pcc_table) == 64 && sizeof(struct pcc_flow) == 64 &&
		      sizeof(struct pcc_event) == 64,
	      "as device code has them");

struct pcc_entry {
	struct slot_flow *row; /* NULL: free */
	uint32_t begun;	       /* if the row says otherwise, it is another flow's */
	uint32_t tag, number;
	uint32_t qpn; /* as the row said at first; it says 0 once the flow ends */
	uint16_t slot;
	uint8_t next;	      /* enum pcc_next */
	uint32_t held;	      /* what has happened while the ring was full, as slot_flow.happened */
	uint32_t outstanding; /* events that no doorbell has answered yet */
};

struct dpa_pcc {
	struct wire_process *wire;
	struct slot *slots;
	unsigned port; /* port of the host */
	struct dpa_process *process;
	struct pcc_table *table;
	struct pcc_flow *flows;
	struct pcc_event *events;
	struct spin lock; /* guards the fields below */
	struct dpa_handler *handler;
	uint64_t produced;
	bool full; /* the ring was, and entries hold something back */
	uint32_t tags;
	uint32_t last; /* the entry that was given out last */
	struct pcc_entry entry[PCC_FLOWS];
};

/* ---- entries ---- */

static bool entry_is_live(const struct pcc_entry *e)
{
	return e->row && atomic_load(&e->row->begun) == e->begun && atomic_load(&e->row->qpn);
}

/* Returns the entry of a row; NULL: the row's flow has ended, or all entries are taken, then *full is
 * set.  Lock held. */
static struct pcc_entry *entry_of(struct dpa_pcc *pcc, uint16_t slot, struct slot_flow *row,
				  bool *full)
{
	uint32_t known = atomic_load(&row->entry_plus_1) - 1, begun, qpn, n;
	struct pcc_entry *e = known < PCC_FLOWS ? &pcc->entry[known] : NULL;

	if (e && e->row == row && e->begun == atomic_load(&row->begun))
		return e;
	/* In this order: a flow that takes the row says so by its number first (row_take). */
	begun = atomic_load(&row->begun);
	qpn = atomic_load(&row->qpn);
	*full = false;
	if (!qpn)
		return NULL;
	for (n = 1; n <= PCC_FLOWS; n++) {
		e = &pcc->entry[(pcc->last + n) % PCC_FLOWS];
		if (!entry_is_live(e))
			break;
	}
	*full = n > PCC_FLOWS;
	if (*full)
		return NULL;
	pcc->last = (uint32_t)(e - pcc->entry);
	*e = (struct pcc_entry){
		.row = row,
		.begun = begun,
		.tag = ++pcc->tags,
		.qpn = qpn,
		.slot = slot,
	};
	pcc->flows[pcc->last] = (struct pcc_flow){.tag = e->tag, .qpn = qpn};
	atomic_store(&row->entry_plus_1, pcc->last + 1);
	return e;
}

/* ---- events ---- */

static uint32_t count_of_16_bits(uint32_t n)
{
	return min_u32(n, 0xffff);
}

/* An event of another type may have taken the time meanwhile. */
static void event_of_first(struct pcc_event *v, struct slot_flow *row)
{
	uint64_t first = atomic_exchange(&row->first_ns, 0);

	v->first_timestamp = first ? (uint32_t)first : v->timestamp;
}

static bool event_of_sent(struct pcc_event *v, struct slot_flow *row)
{
	uint64_t sent = atomic_exchange(&row->sent, 0);

	if (!sent)
		return false;
	v->sent_bytes = (uint32_t)min_u64(flow_sent_bytes(sent), UINT32_MAX);
	v->sent_packets = flow_sent_packets(sent);
	v->counts = count_of_16_bits(v->sent_bytes / 32) | count_of_16_bits(v->sent_packets) << 16;
	v->qpn = v->flow_qpn;
	event_of_first(v, row);
	return true;
}

static bool event_of_counts(struct pcc_event *v, struct slot_flow *row, _Atomic(uint32_t) *count)
{
	uint32_t n = atomic_exchange(count, 0);

	if (!n)
		return false;
	v->counts = count_of_16_bits(n);
	event_of_first(v, row);
	return true;
}

/* Returns false if an earlier event has told of it already.  The flow counts before it says so: in
 * between, the event for what it said before also takes what it has counted since. */
static bool event_fill(struct pcc_event *v, struct slot_flow *row, enum flow_event type)
{
	switch (type) {
	case FLOW_TX:
		return event_of_sent(v, row);
	case FLOW_CNP:
		return event_of_counts(v, row, &row->cnps);
	case FLOW_NACK:
		if (!event_of_counts(v, row, &row->nacks))
			return false;
		v->subtype = (uint8_t)atomic_load(&row->nack_kind);
		return true;
	case FLOW_RTT:
		v->first_timestamp = (uint32_t)atomic_load(&row->probe_sent_ns);
		v->counts = (uint32_t)atomic_load(&row->probe_received_ns);
		v->qpn = (uint32_t)atomic_load(&row->probe_answered_ns);
		v->timestamp = (uint32_t)atomic_load(&row->probe_back_ns);
		return true;
	}
	return false;
}

/* Events in the order of their importance. */
static const enum flow_event event_order[] = {FLOW_CNP, FLOW_NACK, FLOW_RTT, FLOW_TX};

static bool events_have_room(const struct dpa_pcc *pcc)
{
	return pcc->produced - atomic_load(&pcc->table->consumed) < PCC_EVENTS;
}

/* Takes one thing that has happened to the flow; false: nothing has, or the ring has no room.  Lock
 * held. */
static bool event_put(struct dpa_pcc *pcc, struct pcc_entry *e)
{
	uint32_t flow = (uint32_t)(e - pcc->entry);
	struct pcc_event v = {
		.port = (uint8_t)pcc->port,
		.tag = e->tag,
		.timestamp = (uint32_t)clock_ns(),
		.flow = (uint16_t)flow,
		.flow_qpn = e->qpn,
	};

	/* The flow tells us again only if we have taken what it told us. */
	if (unlikely(!events_have_room(pcc))) {
		e->held |= atomic_exchange(&e->row->happened, 0);
		pcc->full = true;
		return false;
	}
	if (unlikely(e->held)) {
		atomic_fetch_or(&e->row->happened, e->held);
		e->held = 0;
	}
	for (size_t i = 0; i < array_size(event_order); i++) {
		uint32_t bit = 1u << event_order[i];

		if (!(atomic_fetch_and(&e->row->happened, ~bit) & bit))
			continue;
		if (!event_fill(&v, e->row, event_order[i]))
			continue;
		v.type = (uint8_t)event_order[i];
		v.number = e->number++;
		pcc->events[pcc->produced % PCC_EVENTS] = v;
		atomic_store_explicit(&pcc->table->produced, ++pcc->produced, memory_order_release);
		e->outstanding++;
		return true;
	}
	return false;
}

/* Lock held. */
static void flow_look(struct dpa_pcc *pcc, struct pcc_entry *e)
{
	bool any = false;

	if (e->next == PCC_FW) {
		atomic_store(&e->row->happened, 0);
		e->held = 0;
	}
	while ((e->next == PCC_MULTIPLE || !e->outstanding) && event_put(pcc, e))
		any = true;
	/* A handler that has left events in a full ring would hear of none any more. */
	if ((any || e->held) && pcc->handler)
		dpa_handler_activate(pcc->handler);
}

/* Once the ring has room, what it had none for follows.  Nobody hears of the program's taking events,
 * so this happens when a flow or the program has something else to say.  Lock held. */
static void flows_held_look(struct dpa_pcc *pcc)
{
	if (likely(!pcc->full) || !events_have_room(pcc))
		return;
	pcc->full = false;
	for (uint32_t i = 0; i < PCC_FLOWS; i++)
		if (pcc->entry[i].held && entry_is_live(&pcc->entry[i]))
			flow_look(pcc, &pcc->entry[i]);
}

/* The caller holds a lock of the wire. */
static void flow_changed(void *user, uint16_t slot, uint32_t row)
{
	struct dpa_pcc *pcc = user;
	struct slot_flow *r = &pcc->slots[slot].flows[row];
	struct pcc_entry *e;
	bool full;

	if (atomic_load(&r->port) != pcc->port)
		return;
	spin_lock(&pcc->lock);
	e = entry_of(pcc, slot, r, &full);
	if (likely(e))
		flow_look(pcc, e);
	else if (full)
		/* The flow has to tell us again, because it gets an entry once there is one. */
		atomic_store(&r->happened, 0);
	flows_held_look(pcc);
	spin_unlock(&pcc->lock);
}

void dpa_pcc_ring(struct dpa_pcc *pcc, uint32_t flow, uint32_t rate, bool probe,
		  uint32_t next_action)
{
	struct pcc_entry *e = &pcc->entry[flow % PCC_FLOWS];

	spin_lock(&pcc->lock);
	if (flow < PCC_FLOWS && entry_is_live(e) && next_action <= PCC_FW) {
		rate = rate ? min_u32(rate, 1u << FLOW_RATE_BITS) : 1;
		atomic_store(&e->row->rate, rate);
		pcc->flows[flow].rate = rate;
		if (probe)
			atomic_fetch_add(&e->row->probes, 1);
		e->next = (uint8_t)next_action;
		e->outstanding = 0;
		flow_look(pcc, e);
		flows_held_look(pcc);
	}
	spin_unlock(&pcc->lock);
}

/* ---- life ---- */

int dpa_pcc_create(struct wire_process *wire, const struct subnet_port *port, struct dpa_process *p,
		   struct dpa_pcc **out)
{
	struct dpa_pcc *pcc;
	uint64_t at;

	if (!port->ethernet) {
		log_info("devx: congestion is controlled on Ethernet ports only");
		return -EOPNOTSUPP;
	}
	pcc = calloc(1, sizeof(*pcc));
	at = dpa_memory_alloc(p, 64u * (1 + PCC_FLOWS + PCC_EVENTS), 0);
	if (!pcc || !at) {
		free(pcc);
		return -ENOMEM;
	}
	pcc->wire = wire;
	pcc->slots = wire_process_slots(wire);
	pcc->port = port->host_index;
	pcc->process = p;
	pcc->table = (void *)(uintptr_t)at;
	pcc->flows = (void *)(uintptr_t)(at + 64);
	pcc->events = (void *)(uintptr_t)(at + 64 + 64u * PCC_FLOWS);
	*pcc->table = (struct pcc_table){
		.version = PCC_VERSION,
		.flow_entries = PCC_FLOWS,
		.event_entries = PCC_EVENTS,
		.flows = (uintptr_t)pcc->flows,
		.events = (uintptr_t)pcc->events,
		.bytes_per_second = subnet_port_bytes_per_second(port),
	};
	*out = pcc;
	return 0;
}

void dpa_pcc_destroy(struct dpa_pcc *pcc)
{
	free(pcc);
}

int dpa_pcc_begin(struct dpa_pcc *pcc, struct dpa_handler *handler)
{
	int ret = pcc->handler ? -EBUSY : 0;

	if (ret == 0) {
		pcc->handler = handler;
		ret = flow_control_begin(pcc->wire, pcc->port, flow_changed, pcc);
		if (ret < 0)
			pcc->handler = NULL;
	}
	if (ret < 0)
		log_warn("DPA: congestion: the flows of this port are controlled by another "
			 "handler");
	return ret;
}

void dpa_pcc_end(struct dpa_pcc *pcc)
{
	flow_control_end(pcc->wire, pcc->port);
	/* From here on no bell activates the handler either. */
	spin_lock(&pcc->lock);
	pcc->handler = NULL;
	spin_unlock(&pcc->lock);
}

uint64_t dpa_pcc_table(const struct dpa_pcc *pcc)
{
	return (uintptr_t)pcc->table;
}
