// SPDX-License-Identifier: BSD-2-Clause
/* LinkRecord: each link twice, from either end.  SMInfoRecord lists the one SM that there is. */
#include "fabric/daemon/sa/sa.h"

#define LR_FROM_LID  PRM_FIELD(0, 16)
#define LR_FROM_PORT PRM_FIELD(16, 8)
#define LR_TO_PORT   PRM_FIELD(24, 8)
#define LR_TO_LID    PRM_FIELD(32, 16)
#define LR_BYTES     6u

static const struct sa_field link_fields[] = {{0, 16}, {16, 8}, {24, 8}, {32, 16}};

static unsigned link_check(struct sa_query *q)
{
	if (sa_asked(q, 0) &&
	    sa_port_by_lid(q->net, prm_get32(q->record, LR_FROM_LID)) == SUBNET_NONE)
		return SA_NO_RECORDS;
	if (sa_asked(q, 3) &&
	    sa_port_by_lid(q->net, prm_get32(q->record, LR_TO_LID)) == SUBNET_NONE)
		return SA_NO_RECORDS;
	return MAD_STATUS_OK;
}

static struct sa_rows link_rows(const struct sa_query *q)
{
	return sa_rows_of(q, sa_asked(q, 0), prm_get32(q->record, LR_FROM_LID));
}

static uint64_t link_count(const struct sa_query *q)
{
	return link_rows(q).count;
}

static bool link_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	const struct net *n = q->net;
	struct sa_rows rows = link_rows(q);
	uint32_t row = rows.first + (uint32_t)i, peer;

	if (i >= rows.count || n->subnet->ports[row].ethernet)
		return false;
	peer = net_peer(n, row, IB_PORT_INIT);
	if (peer == SUBNET_NONE)
		return false;
	prm_set(out, LR_FROM_LID, sa_lid_of(n, row));
	prm_set(out, LR_FROM_PORT, n->ports[row].number);
	prm_set(out, LR_TO_PORT, n->ports[peer].number);
	prm_set(out, LR_TO_LID, sa_lid_of(n, peer));
	return true;
}

const struct sa_record sa_link_record = {
	.attribute = SA_LINK_RECORD,
	.bytes = LR_BYTES,
	.fields = link_fields,
	.nfields = sizeof(link_fields) / sizeof(link_fields[0]),
	.check = link_check,
	.count = link_count,
	.get = link_get,
};

/* ---- SMInfoRecord ---- */

#define SMR_LID	      PRM_FIELD(0, 16)
#define SMR_GUID      PRM_FIELD(32, 64)
#define SMR_KEY	      PRM_FIELD(96, 64)
#define SMR_ACT_COUNT PRM_FIELD(160, 32)
#define SMR_PRIORITY  PRM_FIELD(192, 4)
#define SMR_STATE     PRM_FIELD(196, 4)
#define SMR_BYTES     25u

static const struct sa_field sm_fields[] = {
	{0, 16}, {16, 16}, {32, 64}, {96, 64}, {160, 32}, {192, 4}, {196, 4},
};

static uint64_t sm_count(const struct sa_query *q)
{
	(void)q;
	return 1;
}

static bool sm_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	const struct sa_sm *sm = &q->sa->sm;

	(void)i;
	prm_set(out, SMR_LID, sa_lid_of(q->net, q->sa->row));
	prm_set(out, SMR_GUID, sm->guid);
	prm_set(out, SMR_ACT_COUNT, sm->act_count);
	prm_set(out, SMR_PRIORITY, sm->priority);
	prm_set(out, SMR_STATE, sm->state);
	if (q->trusted)
		prm_set(out, SMR_KEY, SA_SM_KEY);
	return true;
}

const struct sa_record sa_sm_info_record = {
	.attribute = SA_SM_INFO_RECORD,
	.bytes = SMR_BYTES,
	.fields = sm_fields,
	.nfields = sizeof(sm_fields) / sizeof(sm_fields[0]),
	.count = sm_count,
	.get = sm_get,
};
