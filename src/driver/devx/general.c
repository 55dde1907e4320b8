// SPDX-License-Identifier: BSD-2-Clause
/*
 * General objects: one command creates many kinds of them, which a type tells apart.  Each type
 * numbers its objects separately.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/devx/devx.h"
#include "driver/devx/dpa.h"
#include "driver/devx/emulation.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd_emulation.h"
#include "prm/cmd_flow.h"
#include "prm/cmd.h"

/* ---- ranges of QP numbers that no queue pair gets ---- */

static void devx_reserved_qpns_free(struct devx_obj *obj)
{
	qpn_unreserve(obj->uobj.file->hca->adapter, obj->number);
}

static const struct devx_class devx_reserved_qpns_class = {.free = devx_reserved_qpns_free};

static int create_reserved_qpns(struct devx_call *c, struct devx_obj *obj)
{
	struct adapter *a = c->file->hca->adapter;
	int64_t first;

	/* The device knows one size, that of its capability. */
	if (prm_get32(c->in, GENERAL_IN_LOG_RANGE) != ADAPTER_LOG_RESERVED_QPNS)
		return -EINVAL;
	first = qpn_reserve(a);
	if (first < 0)
		return (int)first;
	devx_obj_init(obj, &devx_reserved_qpns_class, (uint32_t)first);
	return 0;
}

/* ---- addresses whose congestion state is that of a queue pair ---- */

static const struct devx_class devx_av_qp_mapping_class; /* nothing in the device */

/*
 * Tells congestion control which round trip times to take for datagrams and DC to an address.  No
 * link here can be congested, so the mapping only has to exist.
 */
static int create_av_qp_mapping(struct devx_call *c, struct devx_obj *obj)
{
	static _Atomic(uint32_t) number;

	if (prm_get32(c->in, AV_QP_MAPPING_QPN) & ~IB_QPN_MASK)
		return -EINVAL;
	devx_obj_init(obj, &devx_av_qp_mapping_class, atomic_fetch_add(&number, 1));
	return 0;
}

static const struct {
	uint16_t type; /* enum general_object */
	uint16_t in_bytes;
	int (*create)(struct devx_call *c, struct devx_obj *obj);
	size_t record; /* bytes of the record that begins with the object; 0: the object alone */
	/* May be missing: a program then cannot query the object. */
	const struct devx_class *class;
	uint16_t out_bytes;
	devx_run *query;
} types[] = {
	{GENERAL_RESERVED_QPN, RESERVED_QPN_IN_BYTES, create_reserved_qpns},
	{GENERAL_AV_QP_MAPPING, AV_QP_MAPPING_IN_BYTES, create_av_qp_mapping},
	{GENERAL_DPA_PROCESS, DPA_PROCESS_IN_BYTES, devx_create_dpa_process,
	 sizeof(struct devx_dpa_process)},
	{GENERAL_DPA_STREAM, DPA_STREAM_IN_BYTES, devx_create_dpa_stream,
	 sizeof(struct devx_dpa_stream)},
	{GENERAL_DPA_THREAD, DPA_THREAD_IN_BYTES, devx_create_dpa_thread,
	 sizeof(struct devx_dpa_thread)},
	{GENERAL_DPA_OUTBOX, DPA_OUTBOX_IN_BYTES, devx_create_dpa_outbox,
	 sizeof(struct devx_dpa_outbox)},
	{GENERAL_DPA_CMDQ, DPA_CMDQ_IN_BYTES, devx_create_dpa_cmdq, sizeof(struct devx_dpa_cmdq)},
	{GENERAL_DPA_WINDOW, DPA_WINDOW_IN_BYTES, devx_create_dpa_window,
	 sizeof(struct devx_dpa_window)},
	{GENERAL_DPA_ALIAS, DPA_ALIAS_IN_BYTES, devx_create_dpa_alias,
	 sizeof(struct devx_dpa_alias)},
	{GENERAL_DUAR, CMD_IN_BYTES, devx_create_duar},
	{GENERAL_MATCH_DEFINER, MATCH_DEFINER_BYTES, devx_create_definer},
	{GENERAL_FLOW_SAMPLER, FLOW_SAMPLER_BYTES, devx_create_flow_sampler,
	 sizeof(struct devx_flow_sampler), &devx_flow_sampler_class, FLOW_SAMPLER_BYTES,
	 devx_query_flow_sampler},
	{GENERAL_VIRTIO_NET_EMULATION, EMULATION_IN_BYTES, devx_create_emulation,
	 sizeof(struct devx_emulation), &devx_emulation_class, EMULATION_OUT_BYTES,
	 devx_query_emulation},
	{GENERAL_DB_CQ_MAPPING, DB_CQ_BYTES, devx_create_db_context, sizeof(struct devx_db_context),
	 &devx_db_context_class, DB_CQ_BYTES, devx_query_db_context},
	{GENERAL_EMULATED_EQ, EMULATED_EQ_BYTES, devx_create_emulated_eq,
	 sizeof(struct devx_emulated_eq)},
};

/* Returns the row of the type, or the size of the table. */
static size_t type_row(uint16_t type)
{
	size_t i = 0;

	while (i < array_size(types) && types[i].type != type)
		i++;
	return i;
}

static int devx_query_general(struct devx_call *c)
{
	size_t i = type_row((uint16_t)prm_get(c->in, GENERAL_IN_TYPE));

	if (i == array_size(types) || !types[i].query)
		return -EOPNOTSUPP;
	if (container_of(c->target, struct devx_obj, uobj)->class != types[i].class ||
	    c->out_len < types[i].out_bytes)
		return -EINVAL;
	return types[i].query(c);
}

static int devx_create_general(struct devx_call *c, struct devx_obj **out)
{
	uint16_t type = (uint16_t)prm_get(c->in, GENERAL_IN_TYPE);
	struct devx_obj *obj;
	size_t i = type_row(type);
	int ret;

	if (i == array_size(types)) {
		log_info("devx: general objects of type 0x%x are not supported", type);
		return -EOPNOTSUPP;
	}
	if (c->in_len < types[i].in_bytes)
		return -EINVAL;
	obj = calloc(1, types[i].record ? types[i].record : sizeof(*obj));
	if (!obj)
		return -ENOMEM;
	ret = types[i].create(c, obj);
	if (ret < 0) {
		free(obj);
		return ret;
	}
	prm_set(c->out, GENERAL_OUT_ID, obj->number);
	*out = obj;
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_GENERAL_OBJECT, CMD_IN_BYTES, CMD_OUT_BYTES, devx_create_general),
	{
		DEVX_ROW(QUERY_GENERAL_OBJECT, DEVX_OBJ_QUERY, CMD_IN_BYTES, CMD_OUT_BYTES),
		.number = GENERAL_IN_ID,
		.run = devx_query_general,
	},
};

const struct devx_family devx_general_family = DEVX_FAMILY(ops);
