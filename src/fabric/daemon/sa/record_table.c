// SPDX-License-Identifier: BSD-2-Clause
/* Records of the tables that ports have: P_Keys, SL to VL, VL arbitration. */
#include <string.h>

#include "fabric/daemon/sa/sa.h"

#define TABLE_AT_DATA 8u
#define TABLE_BYTES   72u
#define TABLE_LID     PRM_FIELD(0, 16)

static struct sa_rows table_rows(const struct sa_query *q)
{
	return sa_rows_of(q, sa_asked(q, 0), prm_get32(q->record, TABLE_LID));
}

/* Gives row i of the query, if it is a port of a configured node. */
static bool table_row(const struct sa_query *q, uint64_t i, uint32_t *row)
{
	struct sa_rows rows = table_rows(q);

	*row = rows.first + (uint32_t)i;
	return i < rows.count && !q->net->subnet->ports[*row].ethernet &&
	       sa_port_there(q->net, net_end_port(q->net, *row));
}

/* Numbers of ports have a meaning for switches only; CAs have a LID for each port. */
static bool table_port_match(const struct sa_query *q, const uint8_t *record, unsigned component,
			     struct prm_field port)
{
	uint32_t row = sa_port_by_lid(q->net, prm_get32(record, TABLE_LID));

	return !sa_asked(q, component) || row == SUBNET_NONE || !net_is_switch(q->net, row) ||
	       prm_get(q->record, port) == prm_get(record, port);
}

/* ---- P_KeyTableRecord ---- */

#define PKR_BLOCK  PRM_FIELD(16, 16)
#define PKR_PORT   PRM_FIELD(32, 8)
#define PKR_BLOCKS 32u

static const struct sa_field pkey_fields[] = {{0, 16}, {16, 16}};

/* Not everybody may see partitions (15.4.1.2). */
static unsigned pkey_check(struct sa_query *q)
{
	return q->trusted ? MAD_STATUS_OK : SA_INVALID;
}

static bool pkey_record_match(const struct sa_query *q, const uint8_t *record)
{
	return table_port_match(q, record, 2, PKR_PORT);
}

static uint64_t pkey_count(const struct sa_query *q)
{
	return (uint64_t)table_rows(q).count * PKR_BLOCKS;
}

static bool pkey_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	uint32_t row, block = i % PKR_BLOCKS;

	if (!table_row(q, i / PKR_BLOCKS, &row) ||
	    net_pkeys_get(q->net, row, block, out + TABLE_AT_DATA))
		return false;
	prm_set(out, TABLE_LID, sa_lid_of(q->net, row));
	prm_set(out, PKR_BLOCK, block);
	prm_set(out, PKR_PORT, q->net->ports[row].number);
	return true;
}

const struct sa_record sa_pkey_record = {
	.attribute = SA_PKEY_TABLE_RECORD,
	.bytes = TABLE_BYTES,
	.fields = pkey_fields,
	.nfields = sizeof(pkey_fields) / sizeof(pkey_fields[0]),
	.check = pkey_check,
	.count = pkey_count,
	.get = pkey_get,
	.match = pkey_record_match,
};

/* ---- SLtoVLMappingTableRecord ---- */

#define SLVL_IN	   PRM_FIELD(16, 8)
#define SLVL_OUT   PRM_FIELD(24, 8)
#define SLVL_BYTES 16u
#define SLVL_PORTS 256u /* more than any node has */

static const struct sa_field sl_to_vl_fields[] = {{0, 16}};

static bool sl_to_vl_match(const struct sa_query *q, const uint8_t *record)
{
	return table_port_match(q, record, 1, SLVL_IN) && table_port_match(q, record, 2, SLVL_OUT);
}

static uint64_t sl_to_vl_count(const struct sa_query *q)
{
	return (uint64_t)table_rows(q).count * SLVL_PORTS;
}

/* A CA has one table for each of its ports; a switch has one for each pair of them. */
static bool sl_to_vl_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	uint32_t row, in = i % SLVL_PORTS;
	const struct net *n = q->net;

	if (!table_row(q, i / SLVL_PORTS, &row))
		return false;
	if (net_is_switch(n, row) ? in > net_node_of(n, row)->nports : in)
		return false;
	net_sl2vl_get(n, row, in, out + TABLE_AT_DATA);
	prm_set(out, TABLE_LID, sa_lid_of(n, row));
	prm_set(out, SLVL_IN, in);
	prm_set(out, SLVL_OUT, net_is_switch(n, row) ? n->ports[row].number : 0);
	return true;
}

const struct sa_record sa_sl_to_vl_record = {
	.attribute = SA_SL_TO_VL_RECORD,
	.bytes = SLVL_BYTES,
	.fields = sl_to_vl_fields,
	.nfields = sizeof(sl_to_vl_fields) / sizeof(sl_to_vl_fields[0]),
	.count = sl_to_vl_count,
	.get = sl_to_vl_get,
	.match = sl_to_vl_match,
};

/* ---- VLArbitrationTableRecord ---- */

#define VLA_PORT   PRM_FIELD(16, 8)
#define VLA_BLOCK  PRM_FIELD(24, 8)
#define VLA_BLOCKS 4u /* halves of both tables, numbered from 1; what a port has not is zero */

static const struct sa_field vlarb_fields[] = {{0, 16}, {0, 0}, {24, 8}};

static bool vlarb_match(const struct sa_query *q, const uint8_t *record)
{
	return table_port_match(q, record, 1, VLA_PORT);
}

static uint64_t vlarb_count(const struct sa_query *q)
{
	return (uint64_t)table_rows(q).count * VLA_BLOCKS;
}

static bool vlarb_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	uint32_t row, block = i % VLA_BLOCKS + 1;

	if (!table_row(q, i / VLA_BLOCKS, &row))
		return false;
	net_vlarb_get(q->net, row, block, out + TABLE_AT_DATA);
	prm_set(out, TABLE_LID, sa_lid_of(q->net, row));
	prm_set(out, VLA_PORT, q->net->ports[row].number);
	prm_set(out, VLA_BLOCK, block);
	return true;
}

const struct sa_record sa_vlarb_record = {
	.attribute = SA_VL_ARBITRATION_RECORD,
	.bytes = TABLE_BYTES,
	.fields = vlarb_fields,
	.nfields = sizeof(vlarb_fields) / sizeof(vlarb_fields[0]),
	.count = vlarb_count,
	.get = vlarb_get,
	.match = vlarb_match,
};
