// SPDX-License-Identifier: BSD-2-Clause
/* What an adapter keeps for frames: counters, definers and headers of tunnels; see ethernet.h. */
#include "adapter/ethernet/ethernet.h"

#include "adapter/core/device.h"
#include "base/hazard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Definers by number; an entry has 8 bits for the number. */

int flow_definer_create(struct adapter *a, uint32_t format, const uint8_t mask[FLOW_DEFINER_BYTES],
			uint32_t *number)
{
	struct ste_definer *d, *none;

	if (!ste_definer_known(format))
		return -EOPNOTSUPP;
	d = malloc(sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->format = format;
	memcpy(d->mask, mask, sizeof(d->mask));
	/* Lower numbers are kinds that the device has by itself. */
	for (uint32_t i = STE_DEFINER_FIRST; i < FLOW_DEFINERS; i++) {
		none = NULL;
		if (!atomic_compare_exchange_strong(&a->ethernet->definers[i], &none, d))
			continue;
		*number = i;
		return 0;
	}
	free(d);
	return -ENOSPC;
}

void flow_definer_destroy(struct adapter *a, uint32_t number)
{
	struct ste_definer *d = atomic_exchange(&a->ethernet->definers[number], NULL);

	hazard_wait(d, 1);
	free(d);
}

int flow_headers_create(struct adapter *a, const uint8_t *bytes, uint32_t n,
			struct flow_headers **out, uint32_t *number)
{
	struct flow_headers *h;
	int64_t got;

	if (!n || n % 2 || n > FLOW_HEADERS_MAX)
		return -EINVAL;
	h = malloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->n = n;
	memcpy(h->byte, bytes, n);
	got = ids_add(&a->ethernet->headers, h);
	if (got < 0) {
		free(h);
		return (int)got;
	}
	*out = h;
	*number = (uint32_t)got;
	return 0;
}

void flow_headers_destroy(struct adapter *a, struct flow_headers *h, uint32_t number)
{
	ids_remove(&a->ethernet->headers, number);
	free(h);
}

void ethernet_init(struct ethernet *e)
{
	for (unsigned i = 0; i < FLOW_DOMAINS; i++)
		steering_init(&e->rules[i]);
	icm_init(&e->icm);
	ids_init(&e->tables);
	ids_init(&e->samplers);
	ids_init(&e->counters);
	ids_init(&e->headers);
}

void ethernet_release(struct ethernet *e)
{
	for (unsigned i = 0; i < FLOW_DOMAINS; i++)
		steering_release(&e->rules[i]);
	icm_release(&e->icm);
	ids_release(&e->tables);
	ids_release(&e->samplers);
	ids_release(&e->counters);
	ids_release(&e->headers);
}

struct icm *adapter_icm(struct adapter *a)
{
	return &a->ethernet->icm;
}
