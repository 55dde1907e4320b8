// SPDX-License-Identifier: BSD-2-Clause
/* See table.h.  A program's table has entries in device memory; the device's table has one entry,
 * which takes all frames. */
#include "adapter/ethernet/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/core/device.h"
#include "adapter/ethernet/ethernet.h"
#include "base/hazard.h"

int flow_table_create(struct adapter *a, const struct flow_table_attr *attr,
		      struct flow_table **out)
{
	struct flow_table *t = calloc(1, sizeof(*t));
	int64_t number;

	if (!t)
		return -ENOMEM;
	t->adapter = a;
	t->attr = *attr;
	number = ids_add(&a->ethernet->tables, t);
	if (number < 0) {
		free(t);
		return (int)number;
	}
	t->number = (uint32_t)number;
	*out = t;
	return 0;
}

uint32_t flow_table_number(const struct flow_table *t)
{
	return t->number;
}

uint64_t flow_table_address(const struct flow_table *t, bool sent)
{
	return t->attr.by_entries ? t->attr.root[sent] : steer_address(STEER_TABLE, t->number);
}

static struct table_entry *table_entry_make(const struct flow_entry_attr *attr)
{
	struct table_entry *e = calloc(1, sizeof(*e) + attr->n * sizeof(e->dest[0]));

	if (!e)
		return NULL;
	e->counter = attr->counter;
	e->tag = attr->tag;
	e->drop = attr->drop;
	e->n = attr->n;
	if (attr->n)
		memcpy(e->dest, attr->dest, attr->n * sizeof(e->dest[0]));
	return e;
}

/* new: the table's entry from now on; NULL: it has none. */
static void table_entry_swap(struct flow_table *t, struct table_entry *new)
{
	struct table_entry *old = atomic_exchange(&t->entry, new);

	hazard_wait(old, 1);
	free(old);
}

int flow_table_set_entry(struct flow_table *t, const struct flow_entry_attr *attr)
{
	if (t->attr.by_entries)
		return -EINVAL;
	if (atomic_load_explicit(&t->entry, memory_order_relaxed))
		return -EBUSY;
	return flow_table_change_entry(t, attr);
}

int flow_table_change_entry(struct flow_table *t, const struct flow_entry_attr *attr)
{
	struct table_entry *e = table_entry_make(attr);

	if (!e)
		return -ENOMEM;
	table_entry_swap(t, e);
	return 0;
}

void flow_table_clear_entry(struct flow_table *t)
{
	table_entry_swap(t, NULL);
}

void flow_table_destroy(struct flow_table *t)
{
	ids_remove(&t->adapter->ethernet->tables, t->number);
	free(atomic_load_explicit(&t->entry, memory_order_relaxed));
	free(t);
}

/* ---- samplers ---- */

int flow_sampler_create(struct adapter *a, const struct flow_sampler_attr *attr,
			struct flow_sampler **out)
{
	struct flow_sampler *s = calloc(1, sizeof(*s));
	int64_t number;

	if (!s)
		return -ENOMEM;
	s->attr = *attr;
	number = ids_add(&a->ethernet->samplers, s);
	if (number < 0) {
		free(s);
		return (int)number;
	}
	s->number = (uint32_t)number;
	*out = s;
	return 0;
}

uint32_t flow_sampler_number(const struct flow_sampler *s)
{
	return s->number;
}

uint64_t flow_sampler_address(const struct flow_sampler *s)
{
	return steer_address(STEER_SAMPLER, s->number);
}

void flow_sampler_destroy(struct adapter *a, struct flow_sampler *s)
{
	ids_remove(&a->ethernet->samplers, s->number);
	free(s);
}
