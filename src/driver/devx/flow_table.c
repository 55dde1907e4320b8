// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables of flows beyond the root.  Tables that software owns are places in device memory.  Tables
 * of the device have one group, and in it one entry that takes all frames, as libraries make them
 * to lead a frame to several places.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/devx/devx.h"
#include "driver/devx/raw.h"
#include "prm/cmd_flow.h"

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

struct devx_flow_entry {
	struct devx_obj obj;
	struct flow_table *table;
	uint32_t nleads;
	struct uobj **leads; /* tables and TIRs that it leads to, and uses */
};

static void flow_entry_leave(struct devx_flow_entry *e)
{
	for (uint32_t i = 0; i < e->nleads; i++)
		e->leads[i]->users--;
	free((void *)e->leads);
}

static void devx_flow_entry_free(struct devx_obj *obj)
{
	struct devx_flow_entry *e = container_of(obj, struct devx_flow_entry, obj);

	flow_table_clear_entry(e->table);
	flow_entry_leave(e);
}

static const struct devx_class devx_flow_entry_class = {.free = devx_flow_entry_free};

/* Reads the lists behind the entry into memory that the caller frees. */
static int flow_entry_read(struct devx_call *c, struct flow_entry_attr *attr,
			   struct flow_dest **dests)
{
	static const int kinds[] = {[FLOW_DEST_VPORT] = FLOW_TO_VPORT,
				    [FLOW_DEST_TABLE] = FLOW_TO_TABLE,
				    [FLOW_DEST_TIR] = FLOW_TO_TIR};
	const uint8_t *context = c->in + FLOW_ENTRY_CONTEXT, *at = c->in + FLOW_ENTRY_BYTES;
	uint32_t action = prm_get32(context, FLOW_CONTEXT_ACTION);
	uint64_t ndests = action & FLOW_ENTRY_FORWARD ? prm_get(context, FLOW_CONTEXT_DESTS) : 0;
	uint64_t ncounters =
		action & FLOW_ENTRY_COUNT ? prm_get(context, FLOW_CONTEXT_COUNTERS) : 0;

	if (action & ~(uint32_t)(FLOW_ENTRY_DROP | FLOW_ENTRY_FORWARD | FLOW_ENTRY_COUNT) ||
	    prm_get32(context, FLOW_CONTEXT_EXTENDED) || ncounters > 1) {
		log_info("devx: flow table entries forward, drop, and count by one counter");
		return -EOPNOTSUPP;
	}
	if ((ndests + ncounters) * FLOW_DEST_BYTES > c->in_len - FLOW_ENTRY_BYTES)
		return -EINVAL;
	*dests = calloc(ndests + 1, sizeof(**dests));
	if (!*dests)
		return -ENOMEM;
	for (uint64_t i = 0; i < ndests; i++, at += FLOW_DEST_BYTES) {
		uint32_t type = prm_get32(at, FLOW_DEST_TYPE);

		if (type >= array_size(kinds)) {
			free(*dests);
			return -EOPNOTSUPP;
		}
		(*dests)[i].kind = kinds[type];
		(*dests)[i].number = prm_get32(at, FLOW_DEST_NUMBER);
	}
	*attr = (struct flow_entry_attr){
		.counter = ncounters ? prm_get32(at, FLOW_DEST_COUNTER) : 0,
		.tag = prm_get32(context, FLOW_CONTEXT_TAG),
		.drop = action & FLOW_ENTRY_DROP,
		.n = (uint32_t)ndests,
		.dest = *dests,
	};
	return 0;
}

/* An entry keeps the objects of DEVX that it names.  A TIR may belong to a queue pair of verbs, and
 * a port of the switch is no object. */
static int flow_entry_lead(struct devx_call *c, struct devx_flow_entry *e,
			   const struct flow_entry_attr *attr)
{
	e->leads = (struct uobj **)calloc(attr->n + 1, sizeof(struct uobj *));
	if (!e->leads)
		return -ENOMEM;
	for (uint32_t i = 0; i < attr->n; i++) {
		const struct flow_dest *d = &attr->dest[i];
		struct uobj *obj = d->kind == FLOW_TO_TIR
					   ? devx_find(c->file, &devx_tir_class, d->number)
				   : d->kind == FLOW_TO_TABLE
					   ? devx_find(c->file, &devx_flow_table_class, d->number)
					   : NULL;

		if (!obj)
			continue;
		obj->users++;
		e->leads[e->nleads++] = obj;
	}
	return 0;
}

static int devx_set_flow_entry(struct devx_call *c, struct devx_obj **out)
{
	struct devx_flow_table *t = flow_table_named(c);
	struct flow_entry_attr attr;
	struct devx_flow_entry *e;
	struct flow_dest *dests;
	int ret;

	if (!t || !devx_find(c->file, &devx_flow_group_class,
			     prm_get32(c->in + FLOW_ENTRY_CONTEXT, FLOW_CONTEXT_GROUP)))
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->table = t->table;
	ret = flow_entry_read(c, &attr, &dests);
	if (ret == 0) {
		ret = flow_entry_lead(c, e, &attr);
		if (ret == 0)
			ret = flow_table_set_entry(t->table, &attr);
		free(dests);
	}
	if (ret < 0) {
		flow_entry_leave(e);
		free(e);
		return ret;
	}
	devx_obj_init(&e->obj, &devx_flow_entry_class, prm_get32(c->in, FLOW_ENTRY_INDEX));
	devx_obj_uses(&e->obj, &t->obj.uobj);
	*out = &e->obj;
	return 0;
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
	DEVX_CREATE(SET_FLOW_TABLE_ENTRY, FLOW_ENTRY_BYTES, CMD_OUT_BYTES, devx_set_flow_entry),
};

const struct devx_family devx_flow_table_family = DEVX_FAMILY(ops);
