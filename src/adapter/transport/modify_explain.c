// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/transport/modify_explain.h"

#include <stdio.h>

#include "adapter/qp/qp_state.h"

#define NAMES_BYTES 320

/* Attributes as programs name them; each stands at the place of its bit. */
static const char *const attribute_names[] = {
	"IBV_QP_STATE",
	"IBV_QP_CUR_STATE",
	"IBV_QP_EN_SQD_ASYNC_NOTIFY",
	"IBV_QP_ACCESS_FLAGS",
	"IBV_QP_PKEY_INDEX",
	"IBV_QP_PORT",
	"IBV_QP_QKEY",
	"IBV_QP_AV",
	"IBV_QP_PATH_MTU",
	"IBV_QP_TIMEOUT",
	"IBV_QP_RETRY_CNT",
	"IBV_QP_RNR_RETRY",
	"IBV_QP_RQ_PSN",
	"IBV_QP_MAX_QP_RD_ATOMIC",
	"IBV_QP_ALT_PATH",
	"IBV_QP_MIN_RNR_TIMER",
	"IBV_QP_SQ_PSN",
	"IBV_QP_MAX_DEST_RD_ATOMIC",
	"IBV_QP_PATH_MIG_STATE",
	"IBV_QP_CAP",
	"IBV_QP_DEST_QPN",
};

static const char *attribute_names_of(uint32_t mask, char text[NAMES_BYTES])
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < array_size(attribute_names); i++)
		if (mask >> i & 1 && n < NAMES_BYTES)
			n += (size_t)snprintf(text + n, NAMES_BYTES - n, "%s%s", n ? "|" : "",
					      attribute_names[i]);
	if (mask >> array_size(attribute_names) && n < NAMES_BYTES)
		(void)snprintf(text + n, NAMES_BYTES - n, "%sothers", n ? "|" : "");
	return text;
}

/* Names the states that a modification can reach from this one. */
static const char *next_states(const struct qp *qp, enum ib_qp_state cur, char text[NAMES_BYTES])
{
	struct qp_rule rule;
	size_t n = 0;

	text[0] = '\0';
	for (enum ib_qp_state s = IB_QPS_RESET; s < IB_QPS_COUNT; s++)
		if (qp_transition_rule(qp->create.type, cur, s, &rule))
			n += (size_t)snprintf(text + n, NAMES_BYTES - n, "%s%s", n ? ", " : "",
					      qp_state_name(s));
	return n ? text : "none";
}

void explain_transition(const struct qp *qp, enum ib_qp_state cur, enum ib_qp_state next,
			uint32_t mask)
{
	const char *from = qp_state_name(cur), *to = qp_state_name(next);
	char names[NAMES_BYTES];
	struct qp_rule rule;

	if (!qp_transition_rule(qp->create.type, cur, next, &rule))
		explain_because("QP 0x%x cannot go from state %s to %s; from %s it can go to "
				"%s",
				qp->qpn, from, to, from, next_states(qp, cur, names));
	else if (rule.required & ~mask)
		explain_because("QP 0x%x, from state %s to %s: attr_mask lacks %s", qp->qpn, from,
				to, attribute_names_of(rule.required & ~mask, names));
	else
		explain_because("QP 0x%x, from state %s to %s: attr_mask has %s, which cannot be "
				"set here",
				qp->qpn, from, to,
				attribute_names_of(mask & ~(rule.required | rule.optional), names));
}

void explain_cur_state(const struct qp *qp, enum ib_qp_state cur, enum ib_qp_state said)
{
	explain_because("QP 0x%x: cur_qp_state is %s, and the QP is in state %s", qp->qpn,
			qp_state_name(said), qp_state_name(cur));
}
