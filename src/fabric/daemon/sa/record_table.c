// SPDX-License-Identifier: BSD-2-Clause
/* Records of the tables of switches and of ports. */
#include "fabric/daemon/sa/sa.h"
#include "fabric/daemon/sma/sma.h"

#include <string.h>

/* ---- SwitchInfoRecord, and the records of forwarding tables ---- */

#define TABLE_AT_DATA 8u
#define TABLE_BYTES   72u
#define TABLE_LID     PRM_FIELD(0, 16)
#define LINEAR_BLOCK  PRM_FIELD(16, 16)
#define MFT_SLICE     PRM_FIELD(16, 4)
#define MFT_BLOCK     PRM_FIELD(23, 9)

#define LINEAR_LIDS 64u
#define MFT_MLIDS   32u
#define MFT_BLOCKS  (NET_MULTICAST_CAP / MFT_MLIDS)

/* Gives the part of a node's rows that a query is about: ports 0 of switches. */
static bool switch_row(const struct sa_query *q, struct sa_rows rows, uint64_t i, uint32_t *row)
{
	*row = rows.first + (uint32_t)i;
	return i < rows.count && net_is_switch(q->net, *row) && sa_port_there(q->net, *row);
}

static struct sa_rows switch_rows(const struct sa_query *q)
{
	return sa_rows_of(q, sa_asked(q, 0), prm_get32(q->record, TABLE_LID));
}

/* ---- SwitchInfoRecord ---- */

#define SWR_BYTES   24u
#define SWR_AT_INFO 4u

static const struct sa_field switch_fields[] = {{0, 16}, {16, 16}};

static uint64_t switch_count(const struct sa_query *q)
{
	return switch_rows(q).count;
}

static bool switch_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	uint8_t data[MAD_ATTRIBUTE_BYTES] = {0};
	struct smp_request r = {.net = q->net, .data = data};

	if (!switch_row(q, switch_rows(q), i, &r.row) || sma_switch_info(&r))
		return false;
	prm_set(out, TABLE_LID, sa_lid_of(q->net, r.row));
	memcpy(out + SWR_AT_INFO, data, SWR_BYTES - SWR_AT_INFO);
	return true;
}

const struct sa_record sa_switch_info_record = {
	.attribute = SA_SWITCH_INFO_RECORD,
	.bytes = SWR_BYTES,
	.fields = switch_fields,
	.nfields = sizeof(switch_fields) / sizeof(switch_fields[0]),
	.count = switch_count,
	.get = switch_get,
};

/* ---- LinearForwardingTableRecord ---- */

static const struct sa_field linear_fields[] = {{0, 16}, {16, 16}};

/* All tables count as long as the longest one; shorter ones have no records at their end. */
static uint32_t linear_blocks(const struct sa_query *q)
{
	uint32_t top = 0;

	for (uint32_t i = 0; i < q->net->nnodes; i++)
		if (q->net->nodes[i].sw && q->net->nodes[i].sw->linear_top > top)
			top = q->net->nodes[i].sw->linear_top;
	return top / LINEAR_LIDS + 1;
}

static unsigned linear_check(struct sa_query *q)
{
	q->scratch[0] = linear_blocks(q);
	return MAD_STATUS_OK;
}

static uint64_t linear_count(const struct sa_query *q)
{
	return (uint64_t)switch_rows(q).count * q->scratch[0];
}

static bool linear_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	uint32_t row, block = (uint32_t)(i % q->scratch[0]);
	const struct net_switch *sw;

	if (!switch_row(q, switch_rows(q), i / q->scratch[0], &row))
		return false;
	sw = net_node_of(q->net, row)->sw;
	if (block > sw->linear_top / LINEAR_LIDS)
		return false;
	prm_set(out, TABLE_LID, sa_lid_of(q->net, row));
	prm_set(out, LINEAR_BLOCK, block);
	net_lft_block_get(sw, block, out + TABLE_AT_DATA);
	return true;
}

const struct sa_record sa_linear_record = {
	.attribute = SA_LINEAR_TABLE_RECORD,
	.bytes = TABLE_BYTES,
	.fields = linear_fields,
	.nfields = sizeof(linear_fields) / sizeof(linear_fields[0]),
	.check = linear_check,
	.count = linear_count,
	.get = linear_get,
};

/* ---- MulticastForwardingTableRecord ---- */

static const struct sa_field multicast_fields[] = {{0, 16}, {16, 4}, {20, 3}, {23, 9}, {32, 32}};

static uint64_t multicast_count(const struct sa_query *q)
{
	return (uint64_t)switch_rows(q).count * MFT_BLOCKS * NET_MFT_SLICES;
}

/* Leaves out blocks in which no group has a port, which look like tables that nobody has set. */
static bool multicast_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	static const uint8_t nothing[MAD_ATTRIBUTE_BYTES];
	const uint32_t slice = i % NET_MFT_SLICES, block = i / NET_MFT_SLICES % MFT_BLOCKS;
	const struct net_node *node;
	uint32_t row;

	if (!switch_row(q, switch_rows(q), i / NET_MFT_SLICES / MFT_BLOCKS, &row))
		return false;
	node = net_node_of(q->net, row);
	if (slice > node->nports / 16u)
		return false;
	net_mft_block_get(node->sw, block, slice, out + TABLE_AT_DATA);
	if (!memcmp(out + TABLE_AT_DATA, nothing, sizeof(nothing)))
		return false;
	prm_set(out, TABLE_LID, sa_lid_of(q->net, row));
	prm_set(out, MFT_SLICE, slice);
	prm_set(out, MFT_BLOCK, block);
	return true;
}

const struct sa_record sa_multicast_record = {
	.attribute = SA_MULTICAST_TABLE_RECORD,
	.bytes = TABLE_BYTES,
	.fields = multicast_fields,
	.nfields = sizeof(multicast_fields) / sizeof(multicast_fields[0]),
	.count = multicast_count,
	.get = multicast_get,
};

/* ---- records of the tables that ports have: P_Keys, SL to VL, VL arbitration ---- */

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
