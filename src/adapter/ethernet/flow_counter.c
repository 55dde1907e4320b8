// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/ethernet/flow_counter.h"

#include <errno.h>
#include <stdlib.h>

int flow_counter_create(struct flow_counter **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void flow_counter_read(const struct flow_counter *c, uint64_t *packets, uint64_t *bytes)
{
	*packets = atomic_load_explicit(&c->packets, memory_order_relaxed);
	*bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed);
}

void flow_counter_destroy(struct flow_counter *c)
{
	free(c);
}
