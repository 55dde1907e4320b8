// SPDX-License-Identifier: BSD-2-Clause
/*
 * The list of the files with commands, and the commands that mlx5_ib lets pass but this device does
 * not have.  A command without a row never reaches a device.
 */
#include "driver/devx/devx.h"

#define LACKS(op, how)                                              \
	{                                                           \
		.opcode = PRM_OP_##op, .method = (how), .name = #op \
	}

static const struct devx_op lacking[] = {
	LACKS(QUERY_ROCE_ADDRESS, DEVX_GENERAL),
	LACKS(QUERY_VNIC_ENV, DEVX_GENERAL),
	LACKS(QUERY_VPORT_COUNTER, DEVX_GENERAL),
	LACKS(QUERY_CONG_STATUS, DEVX_GENERAL),
	LACKS(QUERY_CONG_PARAMS, DEVX_GENERAL),
	LACKS(QUERY_CONG_STATISTICS, DEVX_GENERAL),
	LACKS(ALLOC_Q_COUNTER, DEVX_OBJ_CREATE),
	LACKS(ALLOC_MODIFY_HEADER_CONTEXT, DEVX_OBJ_CREATE),
	LACKS(CREATE_SCHEDULING_ELEMENT, DEVX_OBJ_CREATE),
	LACKS(ADD_VXLAN_UDP_DPORT, DEVX_OBJ_CREATE),
	LACKS(SET_L2_TABLE_ENTRY, DEVX_OBJ_CREATE),
	LACKS(CREATE_SRQ, DEVX_OBJ_CREATE),
	LACKS(CREATE_XRC_SRQ, DEVX_OBJ_CREATE),
	LACKS(CREATE_XRQ, DEVX_OBJ_CREATE),
	LACKS(ATTACH_TO_MCG, DEVX_OBJ_CREATE),
	LACKS(ARM_XRC_SRQ, DEVX_OBJ_MODIFY),
	LACKS(QUERY_XRC_SRQ, DEVX_OBJ_QUERY),
};

static const struct devx_family lacking_family = DEVX_FAMILY(lacking);

/* The first family is the one whose commands a program sends at the pace of its calls. */
static const struct devx_family *const families[] = {
	&devx_dpa_family,	   &devx_port_family,	   &devx_pd_family,
	&devx_mkey_family,	   &devx_psv_family,	   &devx_cq_family,
	&devx_rmp_family,	   &devx_qp_family,	   &devx_qp_modify_family,
	&devx_dct_family,	   &devx_general_family,   &devx_dpa_thread_family,
	&devx_td_family,	   &devx_rq_family,	   &devx_sq_family,
	&devx_rqt_family,	   &devx_tir_family,	   &devx_flow_table_family,
	&devx_flow_counter_family, &devx_vport_family,	   &devx_eq_family,
	&devx_reformat_family,	   &devx_emulation_family, &lacking_family,
};

static const struct devx_op *family_op(const struct devx_family *f, uint16_t opcode,
				       enum devx_method method)
{
	for (size_t i = 0; i < f->nops; i++)
		if (f->ops[i].opcode == opcode && f->ops[i].method == method)
			return &f->ops[i];
	return NULL;
}

const struct devx_op *devx_op_find(uint16_t opcode, enum devx_method method)
{
	for (size_t i = 0; i < array_size(families); i++) {
		const struct devx_op *op = family_op(families[i], opcode, method);

		if (op)
			return op;
	}
	return NULL;
}
