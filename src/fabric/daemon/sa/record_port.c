// SPDX-License-Identifier: BSD-2-Clause
/* PortInfoRecord. */
#include <string.h>

#include "fabric/daemon/sa/sa.h"

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
