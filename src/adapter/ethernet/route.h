/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame on its way through tables beyond the root, until it is dropped or gets somewhere, perhaps
 * to several places.
 */
#pragma once

#include "adapter/adapter.h"
#include "adapter/ste/walk.h"

/* Flow tables that programs make, as a frame on its way sees them. */

/* The one entry of a table that has no entries in device memory. */
struct table_entry {
	uint32_t counter; /* the counter's number, or 0 */
	uint32_t tag;
	bool drop;
	uint32_t n;
	struct flow_dest dest[];
};

struct flow_table {
	struct adapter *adapter;
	struct flow_table_attr attr;
	uint32_t number;
	_Atomic(struct table_entry *) entry; /* NULL: no entry takes the frame */
};

struct flow_sampler {
	struct flow_sampler_attr attr;
	uint32_t number;
	_Atomic(uint32_t) frames;
};

struct frame_route {
	struct adapter *adapter;
	bool sent; /* the host has sent it; else it has come from the wire */
	struct ste_frame frame;
	unsigned depth; /* how deep it is in nested tables that the device owns */
	/* Called when the frame is at an object that is no table.  It may have changed on the
	 * way. */
	void (*arrive)(struct frame_route *r, const struct steer_target *to);
	/* Called when the frame is dropped; why: words of a trace. */
	void (*dropped)(struct frame_route *r, const char *why);
};

/* The caller is a reader. */
void route_to_table(struct frame_route *r, const struct flow_table *t);
/* Changes the frame as a rule says.  False: it cannot, and has dropped the frame. */
bool route_modify(struct frame_route *r, const struct flow_modify *m) must_check;
