/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow tables that programs make, as a frame on its way sees them. */
#pragma once

#include "adapter/adapter.h"

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
