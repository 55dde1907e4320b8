// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/ethernet/flow_counter.h"

#include <errno.h>
#include <stdlib.h>

#include "adapter/core/device.h"
#include "adapter/ethernet/ethernet.h"

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

int flow_counter_create_numbered(struct adapter *a, struct flow_counter **out, uint32_t *number)
{
	int ret = flow_counter_create(out);
	int64_t got;

	if (ret < 0)
		return ret;
	got = ids_add(&a->ethernet->counters, *out);
	if (got < 0) {
		flow_counter_destroy(*out);
		return (int)got;
	}
	*number = (uint32_t)got;
	return 0;
}

void flow_counter_destroy_numbered(struct adapter *a, struct flow_counter *c, uint32_t number)
{
	ids_remove(&a->ethernet->counters, number);
	flow_counter_destroy(c);
}
