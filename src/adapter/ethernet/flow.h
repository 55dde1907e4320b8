/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering: which queues get an Ethernet frame.
 *
 * Rules of one precedence and one mask form a layer, a hash table of what the masked fields must
 * be.  A frame goes through the layers in order; the first one with a match decides, unless a rule
 * there says that the search goes on.  Rules with the same match share the frame: each of their
 * queues gets a copy.
 *
 * There may be thousands of rules in few layers.  Each frame looks rules up, and rules change
 * seldom.  Readers take no lock: they hold the steering while
 * they look at its rules.  Writers take the mutex.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "adapter/frame/frame.h"
#include "adapter/steering.h"

struct flow_layer;

struct steering {
	pthread_mutex_t lock;
	_Atomic(struct flow_layer *) layers; /* in their order */
};

/* A frame that looks for its rules. */
struct steering_frame {
	const struct flow_key *key;
	const uint8_t *bytes;
	uint32_t len;
};

/* What a rule does with a frame. */
struct flow_action {
	struct qp *qp;
	struct flow_table *table;	  /* neither qp nor table: the rule drops the frame */
	const struct flow_modify *modify; /* or NULL */
	bool pass;			  /* instead of a drop: as if there were no rules */
	uint32_t tag;			  /* FLOW_TAG_MASK */
	bool go_on;			  /* the search continues in later layers */
	struct flow_counter *counter;	  /* or NULL */
};

void steering_init(struct steering *s);
static inline bool steering_any(const struct steering *s)
{
	return atomic_load_explicit(&s->layers, memory_order_acquire);
}

/* The caller has removed all rules. */
void steering_release(struct steering *s);

/* Calls fn for each action of the frame.  The caller is a reader. */
void steering_find(struct steering *s, const struct steering_frame *frame,
		   void (*fn)(void *user, const struct flow_action *action), void *user);

/* Rules without an adapter; flow_create and tests use them. */
int steering_add(struct steering *s, const struct flow_attr *attr, struct flow **out) must_check;
void steering_remove(struct steering *s, struct flow *flow);

/* What a frame says behind its outer headers, for rules that look there. */

/* The key is that of the outer headers.  What the frame does not have is zero. */
void flow_deep_read(const uint8_t *frame, uint32_t bytes, const struct flow_key *key,
		    struct flow_deep *out);
