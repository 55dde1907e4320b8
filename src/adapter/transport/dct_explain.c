// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/transport/dct_explain.h"

#include <string.h>

#include "adapter/qp/qp_explain.h"
#include "adapter/qp/qp_state.h"

static const char *reason_words(const char *why)
{
	static const char *const words[][2] = {
		{"not-a-target", "the QP is a DC initiator (DCI), which takes no requests"},
		{"access-key",
		 "its access key is not that of the target, and the initiator is told "
		 "so when its oldest request comes"},
		{"too-many-initiators",
		 "no place for another connection: living initiators have all that the target "
		 "has; this one is told to wait (RNR NAK) and sends again"},
		{"initiator-ended", "the initiator's process has ended"},
		{"old-connection", "the initiator has given up the connection that it belongs to"},
		{"target-goes", "the target is being destroyed"},
	};

	for (size_t i = 0; i < array_size(words); i++)
		if (!strcmp(words[i][0], why))
			return words[i][1];
	return why;
}

void dct_explain_drop(struct qp *target, const struct pkt *pkt, const char *why)
{
	if (!strcmp(why, "state"))
		qp_explain_received(target, pkt,
				    "dropped: the DC target is in state %s; it takes requests in "
				    "RTR",
				    qp_state_name(qp_state(target)));
	else if (!strcmp(why, "pkey"))
		qp_explain_received(target, pkt,
				    "dropped: P_Key mismatch: the packet has 0x%04x, the DC target "
				    "0x%04x (pkey_index %u)",
				    pkt->pkey, target->pkey, target->attr.pkey_index);
	else
		qp_explain_received(target, pkt, "dropped: %s", reason_words(why));
}

void dct_explain_key(struct qp *target, const struct pkt *pkt, uint64_t key)
{
	qp_explain_received(target, pkt,
			    "NAK remote access: the request has the access key 0x%llx, the DC "
			    "target 0x%llx (dc_access_key of mlx5dv_create_qp, remote_dc_key of "
			    "mlx5dv_wr_set_dc_addr)",
			    (unsigned long long)pkt->dc->key, (unsigned long long)key);
}
