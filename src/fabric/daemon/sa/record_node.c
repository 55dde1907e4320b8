// SPDX-License-Identifier: BSD-2-Clause
/* NodeRecord, and what the SA says of itself. */
#include <string.h>

#include "fabric/daemon/sa/sa.h"
#include "fabric/daemon/sma/sma.h"

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
