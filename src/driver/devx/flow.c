// SPDX-License-Identifier: BSD-2-Clause
/*
 * Steering: tables of flows beyond the root, and what their entries name by number: counters,
 * samplers, headers of tunnels, definers.
 */
#include "driver/devx/devx.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/devx/raw.h"
#include "prm/cmd_flow.h"

/*
 * Tables of flows beyond the root.  Tables that software owns are places in device memory.  Tables
 * of the device have one group, and in it one entry that takes all frames, as libraries make them
 * to lead a frame to several places.
 */

struct devx_flow_table {
	struct devx_obj obj;
	struct flow_table *table;
	uint8_t type; /* enum flow_table_type */
	uint8_t level;
};

/* ---- tables ---- */

static void devx_flow_table_free(struct devx_obj *obj)
{
	flow_table_destroy(container_of(obj, struct devx_flow_table, obj)->table);
}

static struct flow_table *devx_flow_table_of(struct devx_obj *obj)
{
	return container_of(obj, struct devx_flow_table, obj)->table;
}

static const struct devx_class devx_flow_table_class = {
	.free = devx_flow_table_free,
	.table = devx_flow_table_of,
};

static int flow_table_domain(uint32_t type, enum flow_domain *domain)
{
	switch (type) {
	case FLOW_TABLE_NIC_RX:
		*domain = FLOW_NIC_RX;
		return 0;
	case FLOW_TABLE_NIC_TX:
		*domain = FLOW_NIC_TX;
		return 0;
	case FLOW_TABLE_FDB:
		*domain = FLOW_FDB;
		return 0;
	default:
		log_info("devx: flow tables of type 0x%x are not supported", type);
		return -EOPNOTSUPP;
	}
}

static int devx_create_flow_table(struct devx_call *c, struct devx_obj **out)
{
	const uint8_t *context = c->in + FLOW_TABLE_CONTEXT;
	struct flow_table_attr attr = {
		.by_entries = prm_get32(context, FLOW_TABLE_SW_OWNER),
		.root = {prm_get(context, FLOW_TABLE_ICM_ROOT_0),
			 prm_get(context, FLOW_TABLE_ICM_ROOT_1)},
	};
	struct devx_flow_table *t;
	int ret = ufile_port(c->file)->ethernet
			  ? flow_table_domain(prm_get32(c->in, FLOW_IN_TYPE), &attr.domain)
			  : -EOPNOTSUPP;

	if (ret < 0)
		return ret;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->type = (uint8_t)prm_get(c->in, FLOW_IN_TYPE);
	t->level = (uint8_t)prm_get(context, FLOW_TABLE_LEVEL);
	ret = flow_table_create(c->file->hca->adapter, &attr, &t->table);
	if (ret < 0) {
		free(t);
		return ret;
	}
	devx_obj_init(&t->obj, &devx_flow_table_class, flow_table_number(t->table));
	prm_set(c->out, CMD_OUT_NUMBER, t->obj.number);
	*out = &t->obj;
	return 0;
}

static int devx_query_flow_table(struct devx_call *c)
{
	const struct devx_flow_table *t = container_of(c->target, struct devx_flow_table, obj.uobj);
	uint8_t *context = c->out + FLOW_TABLE_CONTEXT;

	prm_set(context, FLOW_TABLE_LEVEL, t->level);
	prm_set(context, FLOW_TABLE_ICM_ROOT_0, flow_table_address(t->table, false));
	prm_set(context, FLOW_TABLE_ICM_ROOT_1, flow_table_address(t->table, true));
	return 0;
}

/* Finds the table for a group or an entry; NULL: the device owns no such table. */
static struct devx_flow_table *flow_table_named(struct devx_call *c)
{
	struct uobj *obj =
		devx_find(c->file, &devx_flow_table_class, prm_get32(c->in, FLOW_IN_TABLE));
	struct devx_flow_table *t =
		obj ? container_of(obj, struct devx_flow_table, obj.uobj) : NULL;

	return t && t->type == prm_get32(c->in, FLOW_IN_TYPE) ? t : NULL;
}

/* ---- groups, which have no properties ---- */

static const struct devx_class devx_flow_group_class;

static int devx_create_flow_group(struct devx_call *c, struct devx_obj **out)
{
	struct devx_flow_table *t = flow_table_named(c);
	struct devx_obj *obj;

	if (!t)
		return -EINVAL;
	if (prm_get32(c->in, FLOW_GROUP_CRITERIA)) {
		log_info("devx: groups of flow tables that match on something are not supported");
		return -EOPNOTSUPP;
	}
	obj = calloc(1, sizeof(*obj));
	if (!obj)
		return -ENOMEM;
	devx_obj_init(obj, &devx_flow_group_class,
		      devx_free_number(c->file, &devx_flow_group_class));
	devx_obj_uses(obj, &t->obj.uobj);
	prm_set(c->out, CMD_OUT_NUMBER, obj->number);
	*out = obj;
	return 0;
}

/* ---- entries ---- */

/* What an entry says, and the objects that it leads to. */
struct entry_way {
	uint32_t action; /* enum flow_entry_action */
	uint32_t tag;
	uint32_t counter; /* or 0 */
	uint32_t n;
	struct flow_dest *dests;
	uint32_t nleads;
	struct uobj **leads; /* tables and TIRs that it uses */
};

struct devx_flow_entry {
	struct devx_obj obj;
	struct flow_table *table;
	struct entry_way way;
};

static void entry_leave(struct entry_way *w)
{
	for (uint32_t i = 0; i < w->nleads; i++)
		w->leads[i]->users--;
	free((void *)w->leads);
	free(w->dests);
}

static void devx_flow_entry_free(struct devx_obj *obj)
{
	struct devx_flow_entry *e = container_of(obj, struct devx_flow_entry, obj);

	flow_table_clear_entry(e->table);
	entry_leave(&e->way);
}

static const struct devx_class devx_flow_entry_class = {.free = devx_flow_entry_free};

/* Reads one destination of the list behind the entry. */
static int entry_read_dest(const uint8_t *at, struct flow_dest *dest)
{
	static const int kinds[] = {[FLOW_DEST_VPORT] = FLOW_TO_VPORT,
				    [FLOW_DEST_TABLE] = FLOW_TO_TABLE,
				    [FLOW_DEST_TIR] = FLOW_TO_TIR};
	uint32_t type = prm_get32(at, FLOW_DEST_TYPE);

	if (type >= array_size(kinds))
		return -EOPNOTSUPP;
	dest->kind = kinds[type];
	dest->number = prm_get32(at, FLOW_DEST_NUMBER);
	return 0;
}

/*
 * Reads the entry and the lists behind it.  was: the entry as it is, of which the parts stay that
 * the command does not change; NULL: it is new.  If this fails, the caller still calls entry_leave.
 */
static int entry_read(struct devx_call *c, const struct entry_way *was, struct entry_way *w)
{
	const uint8_t *context = c->in + FLOW_ENTRY_CONTEXT, *at = c->in + FLOW_ENTRY_BYTES;
	uint32_t changes = was ? prm_get32(c->in, FLOW_ENTRY_CHANGES) : FLOW_CHANGE_ALL;
	uint64_t ndests = prm_get(context, FLOW_CONTEXT_DESTS);
	uint64_t ncounters = prm_get(context, FLOW_CONTEXT_COUNTERS);
	bool moves = changes & FLOW_CHANGE_DESTS, counts = changes & FLOW_CHANGE_COUNTERS;

	w->action = changes & FLOW_CHANGE_ACTION ? prm_get32(context, FLOW_CONTEXT_ACTION)
						 : was->action;
	if (moves && !(w->action & FLOW_ENTRY_FORWARD))
		ndests = 0;
	if (counts && !(w->action & FLOW_ENTRY_COUNT))
		ncounters = 0;
	if (changes & ~(uint32_t)FLOW_CHANGE_ALL ||
	    w->action & ~(uint32_t)(FLOW_ENTRY_DROP | FLOW_ENTRY_FORWARD | FLOW_ENTRY_COUNT) ||
	    prm_get32(context, FLOW_CONTEXT_EXTENDED) || ncounters > 1) {
		log_info("devx: flow table entries forward, drop, and count by one counter");
		return -EOPNOTSUPP;
	}
	if ((ndests + ncounters) * FLOW_DEST_BYTES > c->in_len - FLOW_ENTRY_BYTES)
		return -EINVAL;
	w->n = moves ? (uint32_t)ndests : was->n;
	w->dests = calloc(w->n + 1u, sizeof(*w->dests));
	if (!w->dests)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n; i++) {
		int ret = 0;

		if (moves)
			ret = entry_read_dest(at + (size_t)i * FLOW_DEST_BYTES, &w->dests[i]);
		else
			w->dests[i] = was->dests[i];
		if (ret < 0)
			return ret;
	}
	at += ndests * FLOW_DEST_BYTES;
	if (!counts)
		w->counter = was->counter;
	else if (ncounters)
		w->counter = prm_get32(at, FLOW_DEST_COUNTER);
	w->tag = changes & FLOW_CHANGE_TAG ? prm_get32(context, FLOW_CONTEXT_TAG) : was->tag;
	return 0;
}

/* What the device does by it: lists for which there is no action do not count. */
static struct flow_entry_attr entry_attr(const struct entry_way *w)
{
	return (struct flow_entry_attr){
		.counter = w->action & FLOW_ENTRY_COUNT ? w->counter : 0,
		.tag = w->tag,
		.drop = w->action & FLOW_ENTRY_DROP,
		.n = w->action & FLOW_ENTRY_FORWARD ? w->n : 0,
		.dest = w->dests,
	};
}

/* An entry keeps the objects of DEVX that it names.  A TIR may belong to a queue pair of verbs, and
 * a port of the switch is no object. */
static int entry_lead(struct devx_call *c, struct entry_way *w)
{
	w->leads = (struct uobj **)calloc(w->n + 1u, sizeof(struct uobj *));
	if (!w->leads)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n; i++) {
		const struct flow_dest *d = &w->dests[i];
		struct uobj *obj = d->kind == FLOW_TO_TIR
					   ? devx_find(c->file, &devx_tir_class, d->number)
				   : d->kind == FLOW_TO_TABLE
					   ? devx_find(c->file, &devx_flow_table_class, d->number)
					   : NULL;

		if (!obj)
			continue;
		obj->users++;
		w->leads[w->nleads++] = obj;
	}
	return 0;
}

static bool entry_has_group(struct devx_call *c)
{
	return devx_find(c->file, &devx_flow_group_class,
			 prm_get32(c->in + FLOW_ENTRY_CONTEXT, FLOW_CONTEXT_GROUP));
}

/* The kernel lets a program make an entry by op_mod 0 and change one by op_mod 1. */
static bool entry_is_new(const uint8_t *in)
{
	return !prm_get32(in, CMD_IN_OP_MOD);
}

static bool entry_is_changed(const uint8_t *in)
{
	return prm_get32(in, CMD_IN_OP_MOD) == 1;
}

static int devx_set_flow_entry(struct devx_call *c, struct devx_obj **out)
{
	struct devx_flow_table *t = flow_table_named(c);
	struct flow_entry_attr attr;
	struct devx_flow_entry *e;
	int ret;

	if (!t || !entry_has_group(c))
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->table = t->table;
	ret = entry_read(c, NULL, &e->way);
	if (ret == 0)
		ret = entry_lead(c, &e->way);
	attr = entry_attr(&e->way);
	if (ret == 0)
		ret = flow_table_set_entry(t->table, &attr);
	if (ret < 0) {
		entry_leave(&e->way);
		free(e);
		return ret;
	}
	devx_obj_init(&e->obj, &devx_flow_entry_class, prm_get32(c->in, FLOW_ENTRY_INDEX));
	devx_obj_uses(&e->obj, &t->obj.uobj);
	*out = &e->obj;
	return 0;
}

static int devx_change_flow_entry(struct devx_call *c)
{
	struct devx_flow_entry *e = container_of(c->target, struct devx_flow_entry, obj.uobj);
	struct devx_flow_table *t = flow_table_named(c);
	struct entry_way way = {0};
	struct flow_entry_attr attr;
	int ret;

	if (!t || t->table != e->table || !entry_has_group(c))
		return -EINVAL;
	ret = entry_read(c, &e->way, &way);
	if (ret == 0)
		ret = entry_lead(c, &way);
	attr = entry_attr(&way);
	if (ret == 0)
		ret = flow_table_change_entry(t->table, &attr);
	if (ret < 0) {
		entry_leave(&way);
		return ret;
	}
	entry_leave(&e->way);
	e->way = way;
	return 0;
}

/* ---- counters that have a number ---- */

struct devx_flow_counter {
	struct devx_obj obj;
	struct flow_counter *counter;
	uint64_t packets, octets; /* what they were when the program cleared them last */
};

static void devx_flow_counter_free(struct devx_obj *obj)
{
	flow_counter_destroy_numbered(obj->uobj.file->hca->adapter,
				      container_of(obj, struct devx_flow_counter, obj)->counter,
				      obj->number);
}

static struct flow_counter *devx_flow_counter_of(struct devx_obj *obj)
{
	return container_of(obj, struct devx_flow_counter, obj)->counter;
}

static const struct devx_class devx_flow_counter_class = {
	.free = devx_flow_counter_free,
	.counter = devx_flow_counter_of,
};

static int devx_create_flow_counter(struct devx_call *c, struct devx_obj **out)
{
	struct devx_flow_counter *f;
	uint32_t number;
	int ret;

	if (prm_get32(c->in, FLOW_COUNTER_BULK)) {
		log_info("devx: flow counters are made one at a time");
		return -EOPNOTSUPP;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	ret = flow_counter_create_numbered(c->file->hca->adapter, &f->counter, &number);
	if (ret < 0) {
		free(f);
		return ret;
	}
	devx_obj_init(&f->obj, &devx_flow_counter_class, number);
	prm_set(c->out, FLOW_COUNTER_OUT_NUMBER, number);
	*out = &f->obj;
	return 0;
}

static int devx_query_flow_counter(struct devx_call *c)
{
	struct devx_flow_counter *f = container_of(c->target, struct devx_flow_counter, obj.uobj);
	uint64_t packets, octets;

	if (prm_get32(c->in, FLOW_COUNTER_TO_MEMORY)) {
		log_info("devx: flow counters are not written to memory");
		return -EOPNOTSUPP;
	}
	flow_counter_read(f->counter, &packets, &octets);
	prm_set(c->out, FLOW_COUNTER_PACKETS, packets - f->packets);
	prm_set(c->out, FLOW_COUNTER_OCTETS, octets - f->octets);
	if (prm_get32(c->in, FLOW_COUNTER_CLEAR)) {
		f->packets = packets;
		f->octets = octets;
	}
	return 0;
}

/* ---- samplers ---- */

/*
 * A sampler names its tables by number, and they may go before the sampler does: it then drops the
 * frames.
 */

static void devx_flow_sampler_free(struct devx_obj *obj)
{
	flow_sampler_destroy(obj->uobj.file->hca->adapter,
			     container_of(obj, struct devx_flow_sampler, obj)->sampler);
}

const struct devx_class devx_flow_sampler_class = {.free = devx_flow_sampler_free};

int devx_create_flow_sampler(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_flow_sampler *s = container_of(obj, struct devx_flow_sampler, obj);
	const uint8_t *context = c->in + FLOW_SAMPLER_CONTEXT;
	const struct flow_sampler_attr attr = {
		.ratio = prm_get32(context, FLOW_SAMPLER_RATIO),
		.sample_table = prm_get32(context, FLOW_SAMPLER_SAMPLE),
		.default_table = prm_get32(context, FLOW_SAMPLER_DEFAULT),
	};
	int ret;

	if (!ufile_port(c->file)->ethernet)
		return -EOPNOTSUPP;
	if (!attr.ratio)
		return -EINVAL;
	ret = flow_sampler_create(c->file->hca->adapter, &attr, &s->sampler);
	if (ret == 0)
		devx_obj_init(obj, &devx_flow_sampler_class, flow_sampler_number(s->sampler));
	return ret;
}

int devx_query_flow_sampler(struct devx_call *c)
{
	const struct devx_flow_sampler *s =
		container_of(c->target, struct devx_flow_sampler, obj.uobj);
	uint64_t address = flow_sampler_address(s->sampler);

	prm_set(c->out + FLOW_SAMPLER_CONTEXT, FLOW_SAMPLER_ICM_RX, address);
	prm_set(c->out + FLOW_SAMPLER_CONTEXT, FLOW_SAMPLER_ICM_TX, address);
	return 0;
}

/* ---- headers of tunnels ---- */

struct devx_reformat {
	struct devx_obj obj;
	struct flow_headers *headers;
};

static void devx_reformat_free(struct devx_obj *obj)
{
	flow_headers_destroy(obj->uobj.file->hca->adapter,
			     container_of(obj, struct devx_reformat, obj)->headers, obj->number);
}

static const struct devx_class devx_reformat_class = {.free = devx_reformat_free};

/* An entry says itself what it does with the headers, so the types differ in nothing here. */
static bool reformat_inserts(uint32_t type)
{
	return type == REFORMAT_L2_TO_VXLAN || type == REFORMAT_L2_TO_NVGRE ||
	       type == REFORMAT_L2_TO_L2_TUNNEL || type == REFORMAT_L2_TO_L3_TUNNEL;
}

static int devx_create_reformat(struct devx_call *c, struct devx_obj **out)
{
	uint32_t type = prm_get32(c->in, REFORMAT_TYPE), n = prm_get32(c->in, REFORMAT_SIZE);
	struct devx_reformat *r;
	uint32_t number;
	int ret;

	if (!ufile_port(c->file)->ethernet || !reformat_inserts(type)) {
		log_info("devx: reformat contexts of type %u are not supported", type);
		return -EOPNOTSUPP;
	}
	if (!range_inside(REFORMAT_DATA, n, c->in_len))
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	ret = flow_headers_create(c->file->hca->adapter, c->in + REFORMAT_DATA, n, &r->headers,
				  &number);
	if (ret < 0) {
		free(r);
		return ret;
	}
	devx_obj_init(&r->obj, &devx_reformat_class, number);
	prm_set(c->out, REFORMAT_OUT_NUMBER, number);
	*out = &r->obj;
	return 0;
}

/* ---- definers ---- */

static void devx_definer_free(struct devx_obj *obj)
{
	flow_definer_destroy(obj->uobj.file->hca->adapter, obj->number);
}

static const struct devx_class devx_definer_class = {.free = devx_definer_free};

int devx_create_definer(struct devx_call *c, struct devx_obj *obj)
{
	const uint8_t *context = c->in + MATCH_DEFINER_CONTEXT;
	uint32_t format = prm_get32(context, MATCH_DEFINER_FORMAT), number;
	int ret = ufile_port(c->file)->ethernet
			  ? flow_definer_create(c->file->hca->adapter, format,
						context + MATCH_DEFINER_MASK, &number)
			  : -EOPNOTSUPP;

	if (ret == -EOPNOTSUPP)
		log_info("devx: definers of format %u are not supported", format);
	if (ret == 0)
		devx_obj_init(obj, &devx_definer_class, number);
	return ret;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_FLOW_TABLE, FLOW_TABLE_BYTES, CMD_OUT_BYTES, devx_create_flow_table),
	{
		DEVX_ROW(QUERY_FLOW_TABLE, DEVX_OBJ_QUERY, FLOW_TABLE_BYTES, FLOW_TABLE_BYTES),
		.class = &devx_flow_table_class,
		.number = FLOW_IN_TABLE,
		.run = devx_query_flow_table,
	},
	DEVX_CREATE(CREATE_FLOW_GROUP, FLOW_GROUP_BYTES, CMD_OUT_BYTES, devx_create_flow_group),
	{
		DEVX_ROW(SET_FLOW_TABLE_ENTRY, DEVX_OBJ_CREATE, FLOW_ENTRY_BYTES, CMD_OUT_BYTES),
		.create = devx_set_flow_entry,
		.admits = entry_is_new,
	},
	{
		DEVX_ROW(SET_FLOW_TABLE_ENTRY, DEVX_OBJ_MODIFY, FLOW_ENTRY_BYTES, CMD_OUT_BYTES),
		.class = &devx_flow_entry_class,
		.number = FLOW_ENTRY_INDEX,
		.run = devx_change_flow_entry,
		.admits = entry_is_changed,
	},
	DEVX_CREATE(ALLOC_FLOW_COUNTER, CMD_IN_BYTES, CMD_OUT_BYTES, devx_create_flow_counter),
	{
		DEVX_ROW(QUERY_FLOW_COUNTER, DEVX_OBJ_QUERY, FLOW_COUNTER_QUERY_BYTES,
			 FLOW_COUNTER_OUT_BYTES),
		.class = &devx_flow_counter_class,
		.number = FLOW_COUNTER_IN_NUMBER,
		.run = devx_query_flow_counter,
	},
	DEVX_CREATE(ALLOC_PACKET_REFORMAT_CONTEXT, REFORMAT_IN_BYTES, CMD_OUT_BYTES,
		    devx_create_reformat),
};

const struct devx_family devx_flow_family = DEVX_FAMILY(ops);
