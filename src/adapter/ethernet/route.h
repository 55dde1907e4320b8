/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame on its way through tables beyond the root, until it is dropped or gets somewhere, perhaps
 * to several places.
 */
#pragma once

#include "adapter/adapter.h"
#include "adapter/ste/walk.h"

struct frame_route {
	struct adapter *adapter;
	bool sent; /* by the host; else it has come from the wire */
	struct ste_frame frame;
	unsigned depth; /* tables with entries of the device's, one in the other */
	/* It is at an object that is no table.  The frame may have changed on the way. */
	void (*arrive)(struct frame_route *r, const struct steer_target *to);
	/* why: words of a trace. */
	void (*dropped)(struct frame_route *r, const char *why);
};

/* Under RCU. */
void route_to_table(struct frame_route *r, const struct flow_table *t);
/* Changes the frame as a rule says; false: that cannot be, and it has been dropped. */
bool route_modify(struct frame_route *r, const struct flow_modify *m) must_check;
