// SPDX-License-Identifier: BSD-2-Clause
/*
 * GUIDInfoRecord: asking for the GUIDs of ports, and by Set and Delete giving a port further ones
 * (alias GUIDs, 15.2.5.18), whose GIDs virtual machines use.  Each request gets the status that
 * OpenSM would give, because clients rely on it.
 */
#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "fabric/daemon/sa/sa.h"

#define GIR_AT_GUIDS 8u
#define GIR_BYTES    72u
#define GIR_LID	     PRM_FIELD(0, 16)
#define GIR_BLOCK    PRM_FIELD(16, 8)
#define GIR_BLOCKS   32u
#define BLOCK_GUIDS  8u

enum gir_component { GIR_COMP_LID, GIR_COMP_BLOCK, GIR_COMP_GUID = 4 };

/* A port has one block only, so a GUID of a port that is not in its block is nowhere. */
static_assert(NET_GUIDS == BLOCK_GUIDS, "GUIDs are looked for in one block");

/* GUIDs that the SA chooses have OpenFabrics' OUI, as OpenSM's have. */
#define GUID_CHOSEN 0x0014050000000000ull

static const struct sa_field guid_fields[] = {
	{0, 16},   {16, 8},   {24, 8},	 {32, 32},  {64, 64},  {128, 64},
	{192, 64}, {256, 64}, {320, 64}, {384, 64}, {448, 64}, {512, 64},
};

/* ---- asking ---- */

static struct sa_rows guid_rows(const struct sa_query *q)
{
	return sa_rows_of(q, sa_asked(q, GIR_COMP_LID), prm_get32(q->record, GIR_LID));
}

static uint64_t guid_count(const struct sa_query *q)
{
	return (uint64_t)guid_rows(q).count * GIR_BLOCKS;
}

static bool guid_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	const struct sa_rows rows = guid_rows(q);
	const uint32_t row = rows.first + (uint32_t)(i / GIR_BLOCKS), block = i % GIR_BLOCKS;

	if (i / GIR_BLOCKS >= rows.count || !sa_port_there(q->net, row) ||
	    block * BLOCK_GUIDS >= net_info(q->net, row, PI_GUID_CAP) ||
	    net_guids_get(q->net, row, block, out + GIR_AT_GUIDS))
		return false;
	prm_set(out, GIR_LID, sa_lid_of(q->net, row));
	prm_set(out, GIR_BLOCK, block);
	return true;
}

/* ---- changing ---- */

/* A block that a request changes. */
struct guid_block {
	uint32_t row, number;
	uint8_t guids[BLOCK_GUIDS * 8];
};

static bool guid_named(const struct sa_query *q, uint32_t i)
{
	return sa_asked(q, GIR_COMP_GUID + i);
}

static uint64_t guid_at(const uint8_t *guids, uint32_t i)
{
	return mad_get64(guids, i * 8);
}

static union ib_gid guid_gid(const struct sa_query *q, uint32_t row, uint64_t guid)
{
	return (union ib_gid){
		.half = {htobe64(prm_get(q->net->ports[row].info, PI_GID_PREFIX)), htobe64(guid)}};
}

/* Tells whether another port answers to the GUID, or this one already does, at another place. */
static bool guid_taken(const struct sa_query *q, const struct guid_block *b, uint64_t guid)
{
	const union ib_gid gid = guid_gid(q, b->row, guid);
	uint32_t owner = subnet_port_by_gid(q->net->subnet, &gid);

	if (owner != SUBNET_NONE && owner != b->row)
		return true;
	for (uint32_t i = 0; i < BLOCK_GUIDS; i++)
		if (guid_at(b->guids, i) == guid)
			return true;
	return false;
}

/* Returns a GUID that nobody has, and that is the same each time for a place in a port's table. */
static uint64_t guid_choose(const struct sa_query *q, const struct guid_block *b, uint32_t i)
{
	uint64_t guid = GUID_CHOSEN | ((uint64_t)b->row * NET_GUIDS + i);

	while (guid_taken(q, b, guid))
		guid += (uint64_t)q->net->nports * NET_GUIDS;
	return guid;
}

/* Leaves out a GUID that is taken already, which shows in the answer, a copy of the table. */
static void guid_set(const struct sa_query *q, struct guid_block *b, uint32_t i)
{
	uint64_t guid = guid_at(q->record + GIR_AT_GUIDS, i);

	if (!guid) {
		if (!guid_at(b->guids, i))
			mad_put64(b->guids, i * 8, guid_choose(q, b, i));
		return;
	}
	if (!guid_taken(q, b, guid))
		mad_put64(b->guids, i * 8, guid);
}

static bool guid_in_a_group(const struct sa_query *q, uint32_t row, uint64_t guid)
{
	const union ib_gid gid = guid_gid(q, row, guid);

	for (struct sa_group *g = q->sa->groups; g; g = g->next)
		if (sa_member_find(g, gid.raw))
			return true;
	return false;
}

/* Deletes all GUIDs that the request names, or none: one in a multicast group cannot go. */
static unsigned guids_delete(const struct sa_query *q, struct guid_block *b)
{
	for (uint32_t i = 0; i < BLOCK_GUIDS; i++)
		if (guid_named(q, i) && guid_at(b->guids, i) &&
		    guid_in_a_group(q, b->row, guid_at(b->guids, i)))
			return SA_DENIED;
	for (uint32_t i = 0; i < BLOCK_GUIDS; i++)
		if (guid_named(q, i))
			mad_put64(b->guids, i * 8, 0);
	return MAD_STATUS_OK;
}

static unsigned guids_change(const struct sa_query *q, unsigned method, struct guid_block *b)
{
	/* The first GUID is the port's own. */
	if (!b->number && guid_named(q, 0))
		return SA_INVALID;
	if (method == MAD_DELETE)
		return guids_delete(q, b);
	for (uint32_t i = 0; i < BLOCK_GUIDS; i++)
		if (guid_named(q, i))
			guid_set(q, b, i);
	return MAD_STATUS_OK;
}

static unsigned guid_change(struct sa_query *q, unsigned method)
{
	struct guid_block b = {.number = prm_get32(q->record, GIR_BLOCK)};
	uint16_t pkey;
	unsigned status;

	if (!sa_asked(q, GIR_COMP_LID) || !sa_asked(q, GIR_COMP_BLOCK))
		return SA_INSUFFICIENT;
	b.row = sa_port_by_lid(q->net, prm_get32(q->record, GIR_LID));
	if (q->from == SUBNET_NONE)
		return SA_SILENCE;
	if (b.row == SUBNET_NONE)
		return SA_NO_RECORDS;
	/* A port must not learn of a port that it may not speak with. */
	if (!sa_share_pkey(q->net, q->from, b.row, &pkey))
		return SA_SILENCE;
	if (net_guids_get(q->net, b.row, b.number, b.guids))
		return SA_NO_RECORDS;
	status = guids_change(q, method, &b);
	if (status)
		return status;
	/* No other port has any of these, so this has no reason to fail half-way. */
	if (net_guids_set(q->net, b.row, b.number, b.guids))
		return SA_NO_RESOURCES;
	memcpy(q->record + GIR_AT_GUIDS, b.guids, sizeof(b.guids));
	return MAD_STATUS_OK;
}

const struct sa_record sa_guid_info_record = {
	.attribute = SA_GUID_INFO_RECORD,
	.bytes = GIR_BYTES,
	.fields = guid_fields,
	.nfields = sizeof(guid_fields) / sizeof(guid_fields[0]),
	.count = guid_count,
	.get = guid_get,
	.change = guid_change,
};
