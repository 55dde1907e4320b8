// SPDX-License-Identifier: BSD-2-Clause
/* Records of nodes, of their ports and of links, and what the SA says of itself. */
#include "fabric/daemon/sa/sa.h"
#include "fabric/daemon/sma/sma.h"

#include <string.h>

/* ---- NodeRecord, and what the SA says of itself ---- */

/* ---- ClassPortInfo ---- */

#define CPI_BASE_VERSION  PRM_FIELD(0, 8)
#define CPI_CLASS_VERSION PRM_FIELD(8, 8)
#define CPI_CAP_MASK	  PRM_FIELD(16, 16)
#define CPI_CAP_MASK2	  PRM_FIELD(32, 27)
#define CPI_RESP_TIME	  PRM_FIELD(59, 5)
#define CPI_REDIRECT_QP	  PRM_FIELD(264, 24)
#define CPI_REDIRECT_QKEY PRM_FIELD(288, 32)
#define CPI_TRAP_QKEY	  PRM_FIELD(544, 32)
#define CPI_BYTES	  72u

/* 15.2.4.2.2: multicast, MultiPathRecord, CapabilityMask queries by bits; in the second mask the
 * same for CapabilityMask2, and whole PortInfo records. */
#define SA_CAP_MULTICAST       (1u << 9)
#define SA_CAP_MULTI_PATH      (1u << 10)
#define SA_CAP_MASK_MATCH      (1u << 13)
#define SA_CAP2_FULL_PORT_INFO (1u << 2)
#define SA_CAP2_EXT_SPEEDS     (1u << 3)
#define SA_CAP2_MASK2_MATCH    (1u << 6)
#define SA_RESP_TIME	       18u /* 4.096 us << 18: a second */

static uint64_t class_port_info_count(const struct sa_query *q)
{
	return q->method == MAD_GET;
}

static bool class_port_info_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	(void)q, (void)i;
	prm_set(out, CPI_BASE_VERSION, 1);
	prm_set(out, CPI_CLASS_VERSION, SA_CLASS_VERSION);
	prm_set(out, CPI_CAP_MASK, SA_CAP_MULTICAST | SA_CAP_MULTI_PATH | SA_CAP_MASK_MATCH);
	prm_set(out, CPI_CAP_MASK2,
		SA_CAP2_FULL_PORT_INFO | SA_CAP2_EXT_SPEEDS | SA_CAP2_MASK2_MATCH);
	prm_set(out, CPI_RESP_TIME, SA_RESP_TIME);
	prm_set(out, CPI_REDIRECT_QP, 1);
	prm_set(out, CPI_REDIRECT_QKEY, MAD_QKEY_WELL_KNOWN);
	prm_set(out, CPI_TRAP_QKEY, MAD_QKEY_WELL_KNOWN);
	return true;
}

const struct sa_record sa_class_port_info = {
	.attribute = SA_CLASS_PORT_INFO,
	.bytes = CPI_BYTES,
	.count = class_port_info_count,
	.get = class_port_info_get,
};

/* ---- NodeRecord ---- */

#define NR_AT_INFO	  4u
#define NR_AT_DESCRIPTION 44u
#define NR_BYTES	  108u
#define NR_LID		  PRM_FIELD(0, 16)

static const struct sa_field node_fields[] = {
	{0, 16},   {16, 16},  {32, 8},	 {40, 8},   {48, 8},  {56, 8},	 {64, 64},   {128, 64},
	{192, 64}, {256, 16}, {272, 16}, {288, 32}, {320, 8}, {328, 24}, {352, 512},
};

static uint64_t node_count(const struct sa_query *q)
{
	return sa_rows_of(q, sa_asked(q, 0), prm_get32(q->record, NR_LID)).count;
}

static bool node_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	struct sa_rows rows = sa_rows_of(q, sa_asked(q, 0), prm_get32(q->record, NR_LID));
	uint8_t data[MAD_ATTRIBUTE_BYTES] = {0};
	struct smp_request r = {
		.net = q->net,
		.row = rows.first + (uint32_t)i,
		.data = data,
	};

	if (i >= rows.count || !sa_port_there(q->net, r.row) || sma_node_info(&r))
		return false;
	prm_set(out, NR_LID, sa_lid_of(q->net, r.row));
	memcpy(out + NR_AT_INFO, data, NR_AT_DESCRIPTION - NR_AT_INFO);
	if (sma_node_description(&r))
		return false;
	memcpy(out + NR_AT_DESCRIPTION, data, MAD_ATTRIBUTE_BYTES);
	return true;
}

const struct sa_record sa_node_record = {
	.attribute = SA_NODE_RECORD,
	.bytes = NR_BYTES,
	.fields = node_fields,
	.nfields = sizeof(node_fields) / sizeof(node_fields[0]),
	.count = node_count,
	.get = node_get,
};

/* ---- PortInfoRecord ---- */

#define PIR_BYTES      68u
#define PIR_AT_INFO    4u
#define PIR_LID	       PRM_FIELD(0, 16)
#define PIR_PORT       PRM_FIELD(16, 8)
#define PIR_CAP_MASK   PRM_FIELD(32 + 160, 32)
#define PIR_CAP_MASK2  PRM_FIELD(32 + 480, 16)
#define PIR_LOCAL_PORT PRM_FIELD(32 + 224, 8)
#define PIR_MKEY       PRM_FIELD(32, 64)

#define COMP_CAP_MASK  7u
#define COMP_CAP_MASK2 53u
#define MODIFIER_BITS  (1u << 31) /* capability masks are matched bit by bit */

/* Makes a field of the record from one of PortInfo. */
#define OF(bit, width)              \
	{                           \
		32 + (bit), (width) \
	}
/* Capability masks have a match function. */
#define OWN          \
	{            \
		0, 0 \
	}

static const struct sa_field port_fields[] = {
	{0, 16},    {16, 8},	 {24, 8},     OF(0, 64),   OF(64, 64),	OF(128, 16), OF(144, 16),
	OWN,	    OF(192, 16), OF(208, 16), OF(224, 8),  OF(232, 8),	OF(240, 8),  OF(248, 8),
	OF(256, 4), OF(260, 4),	 OF(264, 4),  OF(268, 4),  OF(272, 2),	OF(274, 3),  OF(277, 3),
	OF(280, 4), OF(284, 4),	 OF(288, 4),  OF(292, 4),  OF(296, 4),	OF(300, 4),  OF(304, 8),
	OF(312, 8), OF(320, 8),	 OF(328, 4),  OF(332, 4),  OF(336, 3),	OF(339, 5),  OF(344, 4),
	OF(348, 1), OF(349, 1),	 OF(350, 1),  OF(351, 1),  OF(352, 16), OF(368, 16), OF(384, 16),
	OF(400, 8), OF(408, 1),	 OF(409, 2),  OF(411, 5),  OF(416, 3),	OF(419, 5),  OF(424, 4),
	OF(428, 4), OF(432, 16), OF(448, 8),  OF(456, 24), OWN,		OF(496, 4),  OF(500, 4),
	OF(504, 3), OF(507, 5),
};

static bool mask_match(const struct sa_query *q, const uint8_t *record, unsigned component,
		       struct prm_field f)
{
	uint32_t wanted = prm_get32(q->record, f), has = prm_get32(record, f);

	if (!sa_asked(q, component))
		return true;
	return q->modifier & MODIFIER_BITS ? (wanted & has) == wanted : wanted == has;
}

static bool port_match(const struct sa_query *q, const uint8_t *record)
{
	return mask_match(q, record, COMP_CAP_MASK, PIR_CAP_MASK) &&
	       mask_match(q, record, COMP_CAP_MASK2, PIR_CAP_MASK2);
}

static struct sa_rows port_rows(const struct sa_query *q)
{
	return sa_rows_of(q, sa_asked(q, 0), prm_get32(q->record, PIR_LID));
}

static uint64_t port_count(const struct sa_query *q)
{
	return port_rows(q).count;
}

static bool port_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	const struct net *n = q->net;
	struct sa_rows rows = port_rows(q);
	uint32_t row = rows.first + (uint32_t)i;

	if (i >= rows.count || n->subnet->ports[row].ethernet ||
	    !sa_port_there(n, net_end_port(n, row)))
		return false;
	memcpy(out + PIR_AT_INFO, n->ports[row].info, MAD_ATTRIBUTE_BYTES);
	prm_set(out, PIR_LID, sa_lid_of(n, row));
	prm_set(out, PIR_PORT, n->ports[row].number);
	prm_set(out, PIR_LOCAL_PORT, n->ports[row].number);
	if (!q->trusted)
		prm_set(out, PIR_MKEY, 0);
	return true;
}

const struct sa_record sa_port_info_record = {
	.attribute = SA_PORT_INFO_RECORD,
	.bytes = PIR_BYTES,
	.fields = port_fields,
	.nfields = sizeof(port_fields) / sizeof(port_fields[0]),
	.count = port_count,
	.get = port_get,
	.match = port_match,
};

/* LinkRecord: each link twice, from either end.  SMInfoRecord lists the one SM that there is. */

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
