/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults on demand: what happens to packets of queue pairs and to frames on their way (softhca fabric
 * impair), which requests, receives and calls fail, and what happens to objects of a device (softhca
 * inject).  MADs have faults of their own in the daemon (fabric/daemon/mad/impair.h).
 *
 * The daemon writes the rules.  The port at which a packet ends applies those for packets and for
 * receives, and the port of a request those for requests (wire/fault.h); the process those for calls
 * (driver/uverbs/core/inject.h) and, when the daemon tells it that there is a new one, those for
 * objects (adapter_inject).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "prm/ib.h"

#define FAULT_RULES 32u
#define FAULT_ALL   1000000u /* all of a share in parts per million */

#define FAULT_CALL_BYTES 32u

enum fault_kind {
	FAULT_PACKETS,
	FAULT_REQUESTS, /* work requests of send queues */
	FAULT_CALLS,	/* calls of verbs that reach the driver */
	FAULT_RECEIVES, /* receives, when a message comes for them */
	FAULT_OBJECTS,	/* what there is when the rule is set */
	FAULT_KINDS,
};

/* What a rule of FAULT_OBJECTS happens to. */
enum fault_object {
	FAULT_QUEUE_PAIR,
	FAULT_COMPLETION_QUEUE,
	FAULT_SHARED_RECEIVE_QUEUE,
	FAULT_PORT,
	FAULT_DEVICE,
	FAULT_OBJECT_TYPES,
};

/* A rule concerns a packet, request or call if all that it names fits. */
struct fault_rule {
	uint32_t kind; /* enum fault_kind */
	uint32_t set;  /* not 0: the row has a rule; each rule that is set has another number */
	uint32_t link_row_plus_1;  /* one end of a link on the packet's way; 0: any link */
	uint32_t from_row_plus_1;  /* the port that sends; 0: any */
	uint32_t from_host_plus_1; /* the host that sends; 0: any */
	uint32_t to_row_plus_1, to_host_plus_1;
	/* Of the queue pair that sends or receives; of FAULT_OBJECTS: of the queue; 0: any. */
	uint32_t qpn;
	uint32_t ops; /* 1 << enum bth_op each; 0: any, and frames */
	/* Which of these packets, counted from 1 in each process and port; count 0: all. */
	uint32_t first, count;
	/* Shares in parts per million. */
	uint32_t loss_ppm, corrupt_ppm, duplicate_ppm, reorder_ppm;
	uint32_t delay_us, jitter_us;
	uint32_t rate_mbps; /* 0: as fast as it comes */
	uint32_t seed;
	/* Not of packets: the share that fails; 0: all that first and count choose. */
	uint32_t some_ppm;
	uint32_t reliable_only; /* requests of reliable transports: only they can fail so */
	uint32_t syndrome,
		vendor_err; /* of a request's completion (enum cqe_syndrome); 0: the usual */
	int32_t error;	    /* of a call: a positive errno */
	char call[FAULT_CALL_BYTES]; /* its name, as call_is of inject.c compares it */
	uint32_t object;	     /* enum fault_object */
	/* What happens to the object: the event (enum ib_event) with what leads to it, or, for queue
	 * pairs, the error state without one. */
	uint32_t event_plus_1;
	uint32_t error_state;
};

struct fault_rules {
	_Atomic(uint32_t) sequence; /* odd while rules are being written; rises with each change */
	_Atomic(uint32_t) n;	    /* rows up to the last rule; 0: there is none */
	struct fault_rule rule[FAULT_RULES];
};

/* How many packets of queue pairs and frames a rule has met. */
struct fault_counts {
	_Atomic(uint64_t) seen; /* that it concerned */
	_Atomic(uint64_t) done; /* to which it did something */
};

/* The daemon may die while it writes the rules.  After so many attempts a reader keeps the old ones. */
#define FAULT_READ_ATTEMPTS 1000

/* What somebody who applies rules knows of them. */
struct fault_view {
	uint32_t sequence; /* of the rules below */
	uint32_t n;	   /* rows */
	struct fault_rule rule[FAULT_RULES];
	uint64_t met[FAULT_RULES]; /* packets, requests or calls that each rule has concerned */
};

/* Takes the daemon's rules over if they have changed.  Returns a bit for each row with another rule,
 * which counts anew. */
static inline uint32_t fault_view_refresh(struct fault_view *v, const struct fault_rules *from)
{
	struct fault_rule rule[FAULT_RULES];
	uint32_t changed = 0;

	for (int i = 0; i < FAULT_READ_ATTEMPTS; i++) {
		uint32_t before = atomic_load_explicit(&from->sequence, memory_order_acquire);
		uint32_t rows = atomic_load_explicit(&from->n, memory_order_relaxed);

		if (before == v->sequence)
			return 0;
		memcpy(rule, from->rule, sizeof(rule));
		atomic_thread_fence(memory_order_acquire);
		if (before & 1 ||
		    atomic_load_explicit(&from->sequence, memory_order_relaxed) != before)
			continue;
		for (uint32_t row = 0; row < FAULT_RULES; row++)
			if (rule[row].set != v->rule[row].set) {
				changed |= 1u << row;
				v->met[row] = 0;
			}
		memcpy(v->rule, rule, sizeof(rule));
		v->sequence = before;
		v->n = rows < FAULT_RULES ? rows : FAULT_RULES;
		return changed;
	}
	return 0;
}

/* True if the packet, request or call of that order, from 1, is one that the rule chooses. */
static inline bool fault_chooses(const struct fault_rule *r, uint64_t order)
{
	return !r->count || (order >= r->first && order - r->first < r->count);
}

/* What is drawn for one thing and rule. */
enum fault_draw {
	FAULT_DRAW_LOSS,
	FAULT_DRAW_CORRUPT,
	FAULT_DRAW_DUPLICATE,
	FAULT_DRAW_REORDER,
	FAULT_DRAW_JITTER,
	FAULT_DRAW_SOME,
};

static inline uint64_t fault_mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Draws below 'limit': the same for the same seed, kind of draw, and thing that is concerned. */
static inline uint32_t fault_draw(const struct fault_rule *r, enum fault_draw what, uint64_t thing,
				  uint32_t limit)
{
	uint64_t z = fault_mix(thing + (uint64_t)r->seed * 0x9e3779b97f4a7c15ull +
			       what * 0x632be59bd9b4e019ull);

	return (uint32_t)((z >> 32) * limit >> 32);
}

/* True if there is a rule of that kind. */
static inline bool fault_rules_have(const struct fault_rules *rules, enum fault_kind kind)
{
	uint32_t rows = atomic_load_explicit(&rules->n, memory_order_acquire);

	for (uint32_t row = 0; row < rows && row < FAULT_RULES; row++)
		if (rules->rule[row].set && rules->rule[row].kind == kind)
			return true;
	return false;
}

/* True if ports of that kind raise the event on a card. */
static inline bool fault_port_raises(bool ethernet, enum ib_event event)
{
	return !ethernet || event == IB_EVENT_PORT_ACTIVE || event == IB_EVENT_PORT_ERR ||
	       event == IB_EVENT_GID_CHANGE;
}

/* Something meets the rule, which concerns it: counts that, and says whether the rule chooses it by
 * its order. */
static inline bool fault_view_meets(struct fault_view *v, uint32_t row, struct fault_counts *counts)
{
	atomic_fetch_add_explicit(&counts->seen, 1, memory_order_relaxed);
	return fault_chooses(&v->rule[row], ++v->met[row]);
}

/* The same for a request or call: says whether it fails. */
static inline bool fault_view_fails(struct fault_view *v, uint32_t row, struct fault_counts *counts)
{
	const struct fault_rule *r = &v->rule[row];
	bool fails = fault_view_meets(v, row, counts) &&
		     (!r->some_ppm ||
		      fault_draw(r, FAULT_DRAW_SOME, v->met[row], FAULT_ALL) < r->some_ppm);

	if (fails)
		atomic_fetch_add_explicit(&counts->done, 1, memory_order_relaxed);
	return fails;
}
