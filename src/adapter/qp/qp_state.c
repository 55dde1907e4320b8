// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/qp/qp_state.h"

#include "base/compiler.h"

/* Types whose attributes are the same, as a set. */
#define RC     (1ull << IB_QPT_RC)
#define UC     (1ull << IB_QPT_UC)
#define UD     (1ull << IB_QPT_UD)
#define RAW    (1ull << IB_QPT_RAW_PACKET)
#define INI    (1ull << IB_QPT_XRC_INI)
#define TGT    (1ull << IB_QPT_XRC_TGT)
#define DCI    (1ull << IB_QPT_DCI)
#define DCT    (1ull << IB_QPT_DCT)
#define PAIRED (RC | UC | INI | TGT)
#define VERBS  (PAIRED | UD | RAW)
#define DRIVER (DCI | DCT)

#define TO_INIT	  (IB_QP_PKEY_INDEX | IB_QP_PORT)
#define CONNECT	  (IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN)
#define RESPONDER (IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define TO_RTR	  (IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX)
#define RETRIES	  (IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC)
#define REQUESTER (IB_QP_TIMEOUT | IB_QP_SQ_PSN | RETRIES)
#define LIVE	  (IB_QP_CUR_STATE | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE)
#define LIVE_UD	  (IB_QP_CUR_STATE | IB_QP_QKEY)
#define LIVE_RNR  (LIVE | IB_QP_MIN_RNR_TIMER)
#define DRAINED \
	(IB_QP_AV | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PATH_MIG_STATE)
#define DRAINED_RC (DRAINED | IB_QP_PORT | IB_QP_TIMEOUT)
#define ANY	   IB_QPS_COUNT

/*
 * Which attributes a modification needs and which others it may have, as Linux decides it: the table
 * of ib_core for the types of verbs, the checks of mlx5_ib for DCI and DCT.  IB_QP_STATE goes without
 * saying.  What has no row is refused.
 *
 * mlx5_ib has no command from RTS to SQD, and none within SQD.  Here they work as the table of
 * ib_core and the specification (IBTA 10.3.1.5) have them.
 */
static const struct transition {
	uint64_t types;
	uint8_t from, to;
	uint32_t required, optional;
} transitions[] = {
	{VERBS | DCI, ANY, IB_QPS_RESET, 0, 0},
	/* From RESET only the device does so, by a command of DEVX; uqp_modify refuses it. */
	{VERBS, ANY, IB_QPS_ERR, 0, 0},
	{DCI, IB_QPS_INIT, IB_QPS_ERR, 0, 0},
	{DCI, IB_QPS_RTR, IB_QPS_ERR, 0, 0},
	{DCI, IB_QPS_RTS, IB_QPS_ERR, 0, 0},
	{DCI, IB_QPS_ERR, IB_QPS_ERR, 0, 0},

	{PAIRED, IB_QPS_RESET, IB_QPS_INIT, TO_INIT | IB_QP_ACCESS_FLAGS, 0},
	{UD, IB_QPS_RESET, IB_QPS_INIT, TO_INIT | IB_QP_QKEY, 0},
	{RAW, IB_QPS_RESET, IB_QPS_INIT, IB_QP_PORT, 0},
	{DCI, IB_QPS_RESET, IB_QPS_INIT, TO_INIT, 0},
	{DCT, IB_QPS_RESET, IB_QPS_INIT, TO_INIT | IB_QP_ACCESS_FLAGS, 0},

	{PAIRED, IB_QPS_INIT, IB_QPS_INIT, 0, TO_INIT | IB_QP_ACCESS_FLAGS},
	{UD, IB_QPS_INIT, IB_QPS_INIT, 0, TO_INIT | IB_QP_QKEY},
	{RAW, IB_QPS_INIT, IB_QPS_INIT, 0, 0},
	{DCI, IB_QPS_INIT, IB_QPS_INIT, 0, TO_INIT},

	{RC | TGT, IB_QPS_INIT, IB_QPS_RTR, CONNECT | RESPONDER, TO_RTR},
	{UC | INI, IB_QPS_INIT, IB_QPS_RTR, CONNECT, TO_RTR},
	{UD, IB_QPS_INIT, IB_QPS_RTR, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{RAW, IB_QPS_INIT, IB_QPS_RTR, 0, 0},
	{DCI, IB_QPS_INIT, IB_QPS_RTR, IB_QP_PATH_MTU, IB_QP_PKEY_INDEX | IB_QP_AV},
	{DCT, IB_QPS_INIT, IB_QPS_RTR, IB_QP_AV | IB_QP_PATH_MTU | IB_QP_MIN_RNR_TIMER, 0},

	{RC, IB_QPS_RTR, IB_QPS_RTS, REQUESTER, LIVE_RNR},
	{INI, IB_QPS_RTR, IB_QPS_RTS, REQUESTER, LIVE},
	{TGT, IB_QPS_RTR, IB_QPS_RTS, IB_QP_TIMEOUT | IB_QP_SQ_PSN, LIVE_RNR},
	{UC, IB_QPS_RTR, IB_QPS_RTS, IB_QP_SQ_PSN, LIVE},
	{UD, IB_QPS_RTR, IB_QPS_RTS, IB_QP_SQ_PSN, LIVE_UD},
	{RAW, IB_QPS_RTR, IB_QPS_RTS, 0, IB_QP_RATE_LIMIT},
	{DCI, IB_QPS_RTR, IB_QPS_RTS, REQUESTER, IB_QP_MIN_RNR_TIMER},

	{RC | TGT, IB_QPS_RTS, IB_QPS_RTS, 0, LIVE_RNR},
	{UC | INI, IB_QPS_RTS, IB_QPS_RTS, 0, LIVE},
	{UD, IB_QPS_RTS, IB_QPS_RTS, 0, LIVE_UD},
	{RAW, IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_RATE_LIMIT},
	{DCI, IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_MIN_RNR_TIMER},

	{PAIRED | UD, IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY},
	{RAW, IB_QPS_RTS, IB_QPS_SQD, 0, 0},

	{RC | TGT, IB_QPS_SQD, IB_QPS_RTS, 0, LIVE_RNR},
	{UC | INI, IB_QPS_SQD, IB_QPS_RTS, 0, LIVE},
	{UD, IB_QPS_SQD, IB_QPS_RTS, 0, LIVE_UD},
	{RAW, IB_QPS_SQD, IB_QPS_RTS, 0, 0},

	{RC, IB_QPS_SQD, IB_QPS_SQD, 0, DRAINED_RC | RETRIES | RESPONDER},
	{INI, IB_QPS_SQD, IB_QPS_SQD, 0, DRAINED_RC | RETRIES},
	{TGT, IB_QPS_SQD, IB_QPS_SQD, 0, DRAINED_RC | RESPONDER},
	{UC, IB_QPS_SQD, IB_QPS_SQD, 0, DRAINED},
	{UD, IB_QPS_SQD, IB_QPS_SQD, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{RAW, IB_QPS_SQD, IB_QPS_SQD, 0, 0},

	{UD, IB_QPS_SQE, IB_QPS_RTS, 0, LIVE_UD},
	{UC, IB_QPS_SQE, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS},
	{RC | INI | TGT | RAW, IB_QPS_SQE, IB_QPS_RTS, 0, 0},
};

bool qp_transition_rule(enum ib_qp_type type, enum ib_qp_state cur, enum ib_qp_state next,
			struct qp_rule *out)
{
	if ((unsigned)cur >= IB_QPS_COUNT || (unsigned)next >= IB_QPS_COUNT)
		return false;
	for (size_t i = 0; i < array_size(transitions); i++) {
		const struct transition *t = &transitions[i];

		if (!(t->types >> type & 1) || (t->from != ANY && t->from != cur) || t->to != next)
			continue;
		*out = (struct qp_rule){t->required, t->optional};
		/* The driver's types always name the next state. */
		if (DRIVER >> type & 1)
			out->required |= IB_QP_STATE;
		else
			out->optional |= IB_QP_STATE;
		return true;
	}
	return false;
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
