// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/qp/qp_state.h"

#include "base/compiler.h"

/* The table's columns: transports whose attributes differ. */
enum column { COL_UD, COL_UC, COL_RC, COL_XRC_INI, COL_XRC_TGT, COL_RAW, COLUMNS };

struct transition {
	bool allowed;
	uint32_t required[COLUMNS];
	uint32_t optional[COLUMNS];
};

#define INIT_REQUIRED	(IB_QP_PKEY_INDEX | IB_QP_PORT)
#define CONNECT		(IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN)
#define TO_RTR_OPTIONAL (IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX)
#define RC_SEND_PARAMETERS \
	(IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC)
#define UC_LIVE (IB_QP_CUR_STATE | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE)
#define RC_LIVE (UC_LIVE | IB_QP_MIN_RNR_TIMER)
#define UD_LIVE (IB_QP_CUR_STATE | IB_QP_QKEY)
/* An XRC initiator is an RC QP without its responder, a target one without its requester (IBTA
 * annex A14). */
#define RC_RESPONDER   (IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define XRC_TGT_SENDER (IB_QP_TIMEOUT | IB_QP_SQ_PSN)
#define SQD_UC \
	(IB_QP_AV | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PATH_MIG_STATE)
#define SQD_RC                                                                     \
	(SQD_UC | IB_QP_PORT | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | \
	 IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define SQD_XRC_INI (SQD_RC & ~RC_RESPONDER)
#define SQD_XRC_TGT (SQD_RC & ~(IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC))

static const struct transition transitions[IB_QPS_COUNT][IB_QPS_COUNT] = {
	[IB_QPS_RESET] =
		{
			[IB_QPS_INIT] =
				{
					.allowed = true,
					.required = {[COL_UD] = INIT_REQUIRED | IB_QP_QKEY,
						     [COL_UC] = INIT_REQUIRED | IB_QP_ACCESS_FLAGS,
						     [COL_RC] = INIT_REQUIRED | IB_QP_ACCESS_FLAGS,
						     [COL_XRC_INI] =
							     INIT_REQUIRED | IB_QP_ACCESS_FLAGS,
						     [COL_XRC_TGT] =
							     INIT_REQUIRED | IB_QP_ACCESS_FLAGS,
						     [COL_RAW] = IB_QP_PORT},
				},
		},
	[IB_QPS_INIT] =
		{
			[IB_QPS_INIT] =
				{
					.allowed = true,
					.optional = {[COL_UD] = INIT_REQUIRED | IB_QP_QKEY,
						     [COL_UC] = INIT_REQUIRED | IB_QP_ACCESS_FLAGS,
						     [COL_RC] = INIT_REQUIRED | IB_QP_ACCESS_FLAGS,
						     [COL_XRC_INI] =
							     INIT_REQUIRED | IB_QP_ACCESS_FLAGS,
						     [COL_XRC_TGT] =
							     INIT_REQUIRED | IB_QP_ACCESS_FLAGS,
						     [COL_RAW] = IB_QP_PORT},
				},
			[IB_QPS_RTR] =
				{
					.allowed = true,
					.required = {[COL_UC] = CONNECT,
						     [COL_RC] = CONNECT | RC_RESPONDER,
						     [COL_XRC_INI] = CONNECT,
						     [COL_XRC_TGT] = CONNECT | RC_RESPONDER},
					.optional = {[COL_UD] = IB_QP_PKEY_INDEX | IB_QP_QKEY,
						     [COL_UC] = TO_RTR_OPTIONAL,
						     [COL_RC] = TO_RTR_OPTIONAL,
						     [COL_XRC_INI] = TO_RTR_OPTIONAL,
						     [COL_XRC_TGT] = TO_RTR_OPTIONAL},
				},
		},
	[IB_QPS_RTR] =
		{
			[IB_QPS_RTS] =
				{
					.allowed = true,
					.required = {[COL_UD] = IB_QP_SQ_PSN,
						     [COL_UC] = IB_QP_SQ_PSN,
						     [COL_RC] = RC_SEND_PARAMETERS,
						     [COL_XRC_INI] = RC_SEND_PARAMETERS,
						     [COL_XRC_TGT] = XRC_TGT_SENDER},
					.optional = {[COL_UD] = UD_LIVE,
						     [COL_UC] = UC_LIVE,
						     [COL_RC] = RC_LIVE,
						     [COL_XRC_INI] = UC_LIVE,
						     [COL_XRC_TGT] = RC_LIVE},
				},
		},
	[IB_QPS_RTS] =
		{
			[IB_QPS_RTS] =
				{
					.allowed = true,
					.optional = {[COL_UD] = UD_LIVE,
						     [COL_UC] = UC_LIVE,
						     [COL_RC] = RC_LIVE,
						     [COL_XRC_INI] = UC_LIVE,
						     [COL_XRC_TGT] = RC_LIVE},
				},
			[IB_QPS_SQD] =
				{
					.allowed = true,
					.optional = {[COL_UD] = IB_QP_EN_SQD_ASYNC_NOTIFY,
						     [COL_UC] = IB_QP_EN_SQD_ASYNC_NOTIFY,
						     [COL_RC] = IB_QP_EN_SQD_ASYNC_NOTIFY,
						     [COL_XRC_INI] = IB_QP_EN_SQD_ASYNC_NOTIFY,
						     [COL_XRC_TGT] = IB_QP_EN_SQD_ASYNC_NOTIFY},
				},
		},
	[IB_QPS_SQD] =
		{
			[IB_QPS_RTS] =
				{
					.allowed = true,
					.optional = {[COL_UD] = UD_LIVE,
						     [COL_UC] = UC_LIVE,
						     [COL_RC] = RC_LIVE,
						     [COL_XRC_INI] = UC_LIVE,
						     [COL_XRC_TGT] = RC_LIVE},
				},
			[IB_QPS_SQD] =
				{
					.allowed = true,
					.optional = {[COL_UD] = IB_QP_PKEY_INDEX | IB_QP_QKEY,
						     [COL_UC] = SQD_UC,
						     [COL_RC] = SQD_RC,
						     [COL_XRC_INI] = SQD_XRC_INI,
						     [COL_XRC_TGT] = SQD_XRC_TGT},
				},
		},
	[IB_QPS_SQE] =
		{
			[IB_QPS_RTS] =
				{
					.allowed = true,
					.optional = {[COL_UD] = UD_LIVE,
						     [COL_UC] =
							     IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS},
				},
		},
};

/*
 * Dynamically connected queue pairs follow the kernel driver: work requests connect a DCI, so it
 * needs no attributes of a peer; a DCT ends in RTR.
 */
static const struct dc_transition {
	enum ib_qp_type type;
	enum ib_qp_state from, to;
	uint32_t required, optional;
} dc_transitions[] = {
	{IB_QPT_DCI, IB_QPS_RESET, IB_QPS_INIT, INIT_REQUIRED, 0},
	{IB_QPT_DCI, IB_QPS_INIT, IB_QPS_INIT, 0, INIT_REQUIRED},
	{IB_QPT_DCI, IB_QPS_INIT, IB_QPS_RTR, IB_QP_PATH_MTU, IB_QP_PKEY_INDEX | IB_QP_AV},
	{IB_QPT_DCI, IB_QPS_RTR, IB_QPS_RTS, RC_SEND_PARAMETERS, IB_QP_MIN_RNR_TIMER},
	{IB_QPT_DCI, IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_MIN_RNR_TIMER},
	{IB_QPT_DCT, IB_QPS_RESET, IB_QPS_INIT, INIT_REQUIRED | IB_QP_ACCESS_FLAGS, 0},
	{IB_QPT_DCT, IB_QPS_INIT, IB_QPS_RTR, IB_QP_AV | IB_QP_PATH_MTU | IB_QP_MIN_RNR_TIMER, 0},
};

static bool dc_transition_rule(enum ib_qp_type type, enum ib_qp_state from, enum ib_qp_state to,
			       struct qp_rule *out)
{
	const uint32_t always = IB_QP_STATE | IB_QP_CUR_STATE;

	*out = (struct qp_rule){.optional = always};
	if (type == IB_QPT_DCI && (to == IB_QPS_RESET || (to == IB_QPS_ERR && from)))
		return true;
	for (size_t i = 0; i < array_size(dc_transitions); i++) {
		const struct dc_transition *t = &dc_transitions[i];

		if (t->type != type || t->from != from || t->to != to)
			continue;
		*out = (struct qp_rule){t->required, t->optional | always};
		return true;
	}
	return false;
}

static enum column column_of(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return COL_RC;
	case IB_QPT_UC:
		return COL_UC;
	case IB_QPT_XRC_INI:
		return COL_XRC_INI;
	case IB_QPT_XRC_TGT:
		return COL_XRC_TGT;
	case IB_QPT_RAW_PACKET:
		return COL_RAW;
	default:
		return COL_UD;
	}
}

bool qp_transition_rule(enum ib_qp_type type, enum ib_qp_state cur, enum ib_qp_state next,
			struct qp_rule *out)
{
	enum column col = column_of(type);
	const struct transition *t;

	if ((unsigned)cur >= IB_QPS_COUNT || (unsigned)next >= IB_QPS_COUNT)
		return false;
	if (type == IB_QPT_DCI || type == IB_QPT_DCT)
		return dc_transition_rule(type, cur, next, out);
	/* Every state leads to RESET and ERR, whatever the mask is. */
	*out = (struct qp_rule){.optional = UINT32_MAX};
	if (next == IB_QPS_RESET || next == IB_QPS_ERR)
		return true;
	t = &transitions[cur][next];
	/* A reliable QP has no send queue error state. */
	if (!t->allowed || (cur == IB_QPS_SQE && col != COL_UD && col != COL_UC && col != COL_RAW))
		return false;
	*out = (struct qp_rule){t->required[col], t->optional[col] | IB_QP_STATE | IB_QP_CUR_STATE |
							  IB_QP_RATE_LIMIT};
	return true;
}

bool qp_transition_ok(enum ib_qp_type type, enum ib_qp_state cur, enum ib_qp_state next,
		      uint32_t mask)
{
	struct qp_rule rule;

	return qp_transition_rule(type, cur, next, &rule) &&
	       (mask & rule.required) == rule.required &&
	       !(mask & ~(rule.required | rule.optional));
}

const char *qp_state_name(enum ib_qp_state state)
{
	static const char *const name[IB_QPS_COUNT] = {
		[IB_QPS_RESET] = "RESET", [IB_QPS_INIT] = "INIT", [IB_QPS_RTR] = "RTR",
		[IB_QPS_RTS] = "RTS",	  [IB_QPS_SQD] = "SQD",	  [IB_QPS_SQE] = "SQE",
		[IB_QPS_ERR] = "ERR",
	};

	return (unsigned)state < IB_QPS_COUNT ? name[state] : "invalid";
}
