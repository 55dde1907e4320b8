// SPDX-License-Identifier: BSD-2-Clause
/* Flow tables, and the way of a frame through them; see route.h. */
#include "adapter/ethernet/route.h"

#include "adapter/core/device.h"
#include "adapter/ethernet/ethernet.h"
#include "adapter/ste/rewrite.h"
#include "base/hazard.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A program's table has entries in device memory; the device's table has one entry,
 * which takes all frames. */

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

/* How deep tables may be nested whose entries lead to several places. */
#define ROUTE_DEPTH 4u

static void route_to(struct frame_route *r, const struct steer_target *to);

static void route_count(void *user, uint32_t number, uint32_t bytes)
{
	const struct frame_route *r = user;
	struct flow_counter *c = ids_find(&r->adapter->ethernet->counters, number);

	if (c)
		flow_counter_add(c, bytes);
}

static const uint8_t *route_headers(void *user, uint32_t number, uint32_t *bytes)
{
	const struct frame_route *r = user;
	const struct flow_headers *h = ids_find(&r->adapter->ethernet->headers, number);

	if (!h)
		return NULL;
	*bytes = h->n;
	return h->byte;
}

static const struct ste_definer *route_definer(void *user, uint32_t number)
{
	const struct frame_route *r = user;

	return number < FLOW_DEFINERS ? hazard_take(&r->adapter->ethernet->definers[number]) : NULL;
}

/* Tells the log once for each kind of thing, because frames that nobody understands come in
 * masses. */
static void route_tell(struct frame_route *r, enum ste_verdict v, uint32_t what)
{
	uint32_t bit = 1u << v;

	if (!(atomic_fetch_or_explicit(&r->adapter->ethernet->told, bit, memory_order_relaxed) &
	      bit))
		log_warn("steering: frames are dropped: %s (0x%x)", ste_verdict_words(v), what);
}

static void route_walk(struct frame_route *r, uint64_t address)
{
	struct ste_walk w = {
		.icm = &r->adapter->ethernet->icm,
		.frame = &r->frame,
		.count = route_count,
		.headers = route_headers,
		.definer = route_definer,
		.user = r,
	};
	struct steer_target end;
	enum ste_verdict v = ste_walk(&w, address, &end);

	if (v == STE_ARRIVED) {
		route_to(r, &end);
		return;
	}
	route_tell(r, v, w.what);
	r->dropped(r, "bad-entry");
}

bool route_modify(struct frame_route *r, const struct flow_modify *m)
{
	struct ste_walk w = {
		.icm = &r->adapter->ethernet->icm,
		.frame = &r->frame,
		.headers = route_headers,
		.user = r,
	};
	enum ste_verdict v = ste_perform_list(&w, m->action, m->n);

	if (v == STE_ARRIVED)
		return true;
	route_tell(r, v, w.what);
	r->dropped(r, "bad-entry");
	return false;
}

static struct steer_target dest_target(const struct flow_dest *d)
{
	return (struct steer_target){
		.kind = d->kind == FLOW_TO_TIR	   ? STEER_TIR
			: d->kind == FLOW_TO_TABLE ? STEER_TABLE
						   : STEER_VPORT,
		.number = d->number,
	};
}

/* Follows a way with a copy of the frame: a table may change it, and the other ways must get it as
 * it is. */
static void route_to_copy(struct frame_route *r, const struct steer_target *to)
{
	uint8_t bytes[FRAME_MAX];
	struct ste_frame before = r->frame;
	bool in_room = before.bytes == before.room;

	if (in_room)
		memcpy(bytes, before.bytes, before.len);
	route_to(r, to);
	r->frame = before;
	if (in_room)
		memcpy(before.room, bytes, before.len);
}

static void route_to_each(struct frame_route *r, const struct table_entry *e)
{
	for (uint32_t i = 0; i < e->n; i++) {
		const struct steer_target to = dest_target(&e->dest[i]);

		if (i + 1 < e->n && to.kind == STEER_TABLE)
			route_to_copy(r, &to);
		else
			route_to(r, &to);
	}
}

void route_to_table(struct frame_route *r, const struct flow_table *t)
{
	const struct table_entry *e = hazard_take(&t->entry);

	if (t->attr.by_entries) {
		route_walk(r, t->attr.root[t->attr.domain == FLOW_FDB && r->sent]);
		return;
	}
	if (e && e->counter)
		route_count(r, e->counter, r->frame.len);
	if (!e || e->drop || r->depth == ROUTE_DEPTH) {
		r->dropped(r, e && e->drop ? "by-rule" : "no-rule");
		return;
	}
	if (e->tag)
		r->frame.flow_tag = e->tag;
	r->depth++;
	route_to_each(r, e);
	r->depth--;
}

static void route_to_sampler(struct frame_route *r, struct flow_sampler *s)
{
	const struct steer_target sample = {STEER_TABLE, s->attr.sample_table, 0};
	const struct steer_target rest = {STEER_TABLE, s->attr.default_table, 0};

	if (r->depth == ROUTE_DEPTH) {
		r->dropped(r, "no-rule");
		return;
	}
	r->depth++;
	if (atomic_fetch_add_explicit(&s->frames, 1, memory_order_relaxed) % s->attr.ratio == 0)
		route_to_copy(r, &sample);
	route_to(r, &rest);
	r->depth--;
}

static void route_to(struct frame_route *r, const struct steer_target *to)
{
	const struct flow_table *t;
	struct flow_sampler *s;

	switch (to->kind) {
	case STEER_DROP:
		r->dropped(r, "by-rule");
		break;
	case STEER_TABLE:
		t = ids_find(&r->adapter->ethernet->tables, to->number);
		if (t)
			route_to_table(r, t);
		else
			r->dropped(r, "no-table");
		break;
	case STEER_SAMPLER:
		s = ids_find(&r->adapter->ethernet->samplers, to->number);
		if (s)
			route_to_sampler(r, s);
		else
			r->dropped(r, "no-table");
		break;
	default:
		r->arrive(r, to);
		break;
	}
}
