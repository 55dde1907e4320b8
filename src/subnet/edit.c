// SPDX-License-Identifier: BSD-2-Clause
/* Lays out the tables in the block, and changes them while others read; see subnet.h. */
#include "subnet/gid_index.h"
#include "subnet/subnet.h"

#include <errno.h>
#include <string.h>

/* ---- lays out the tables in the block ---- */

static const uint32_t strides[SUBNET_TABLES] = {
	[SUBNET_TABLE_NODES] = sizeof(struct subnet_node),
	[SUBNET_TABLE_PORTS] = sizeof(struct subnet_port),
	[SUBNET_TABLE_GIDS] = sizeof(struct subnet_gid),
	[SUBNET_TABLE_GID_INDEX] = sizeof(uint32_t),
	[SUBNET_TABLE_LIDS] = sizeof(uint32_t),
	[SUBNET_TABLE_SWITCHES] = sizeof(struct subnet_switch),
};

#define TABLE_ALIGN 64u

/* The index is at most half full, so that searches end soon. */
static uint32_t gid_index_size(uint32_t gids)
{
	uint32_t size = 16;

	while (size < gids * 2ull && size < 1u << 31)
		size *= 2;
	return size;
}

static void table_counts(const struct subnet_shape *shape, uint32_t counts[SUBNET_TABLES])
{
	counts[SUBNET_TABLE_NODES] = shape->nodes;
	counts[SUBNET_TABLE_PORTS] = shape->ports;
	counts[SUBNET_TABLE_GIDS] = shape->gids;
	counts[SUBNET_TABLE_GID_INDEX] = gid_index_size(shape->gids);
	counts[SUBNET_TABLE_LIDS] = SUBNET_LIDS;
	counts[SUBNET_TABLE_SWITCHES] = shape->switches;
}

static uint64_t table_bytes(enum subnet_table t, uint32_t count)
{
	return align_up((uint64_t)count * strides[t], TABLE_ALIGN);
}

size_t subnet_bytes(const struct subnet_shape *shape)
{
	uint64_t bytes = align_up(sizeof(struct subnet_head), TABLE_ALIGN);
	uint32_t counts[SUBNET_TABLES];

	table_counts(shape, counts);
	for (unsigned t = 0; t < SUBNET_TABLES; t++)
		bytes += table_bytes((enum subnet_table)t, counts[t]);
	return bytes;
}

static void *table_at(const struct subnet_head *h, enum subnet_table t)
{
	return (char *)(uintptr_t)h + h->table[t].offset;
}

static void subnet_view(struct subnet *s, struct subnet_head *h)
{
	*s = (struct subnet){
		.head = h,
		.nodes = table_at(h, SUBNET_TABLE_NODES),
		.ports = table_at(h, SUBNET_TABLE_PORTS),
		.gids = table_at(h, SUBNET_TABLE_GIDS),
		.gid_index = table_at(h, SUBNET_TABLE_GID_INDEX),
		.lids = table_at(h, SUBNET_TABLE_LIDS),
		.switches = table_at(h, SUBNET_TABLE_SWITCHES),
		.nswitches = h->table[SUBNET_TABLE_SWITCHES].count,
		.nnodes = h->table[SUBNET_TABLE_NODES].count,
		.nports = h->table[SUBNET_TABLE_PORTS].count,
		.ngids = h->table[SUBNET_TABLE_GIDS].count,
		.gid_index_mask = h->table[SUBNET_TABLE_GID_INDEX].count - 1,
	};
}

void subnet_format(struct subnet *s, void *memory, const struct subnet_shape *shape)
{
	uint64_t at = align_up(sizeof(struct subnet_head), TABLE_ALIGN);
	struct subnet_head *h = memory;
	uint32_t counts[SUBNET_TABLES];

	table_counts(shape, counts);
	for (unsigned t = 0; t < SUBNET_TABLES; t++) {
		h->table[t].offset = at;
		h->table[t].count = counts[t];
		h->table[t].stride = strides[t];
		at += table_bytes((enum subnet_table)t, counts[t]);
	}
	h->bytes = at;
	h->version = SUBNET_VERSION;
	h->magic = SUBNET_MAGIC;
	subnet_view(s, h);
	/* subnet_add_node adds the rows. */
	s->nnodes = s->nports = s->ngids = s->nswitches = 0;
	atomic_store_explicit(&h->epoch, 1, memory_order_release);
}

int subnet_attach(struct subnet *s, void *memory, size_t bytes)
{
	struct subnet_head *h = memory;
	uint32_t index;

	if (bytes < sizeof(*h) || h->magic != SUBNET_MAGIC)
		return -EBADMSG;
	if (h->version != SUBNET_VERSION)
		return -EPROTO;
	for (unsigned t = 0; t < SUBNET_TABLES; t++)
		if (h->table[t].stride != strides[t] || h->table[t].offset % TABLE_ALIGN ||
		    !range_inside(h->table[t].offset, (uint64_t)h->table[t].count * strides[t],
				  bytes))
			return -EBADMSG;
	index = h->table[SUBNET_TABLE_GID_INDEX].count;
	if (h->table[SUBNET_TABLE_LIDS].count != SUBNET_LIDS || !index || index & (index - 1))
		return -EBADMSG;
	subnet_view(s, h);
	return 0;
}

/* ---- changes the block while others read it ---- */

void subnet_raise_epoch(struct subnet *s)
{
	/* There is one writer, so it needs no atomic addition. */
	atomic_store_explicit(&s->head->epoch,
			      atomic_load_explicit(&s->head->epoch, memory_order_relaxed) + 1,
			      memory_order_release);
}

/* ---- rows ---- */

static void port_add(struct subnet *s, uint32_t node, uint32_t number, bool ethernet, uint32_t gids)
{
	struct subnet_port *p = &s->ports[s->nports];

	p->node = node;
	p->number = number;
	p->ethernet = ethernet;
	p->first_gid = s->ngids;
	p->gid_room = gids;
	atomic_store_explicit(&p->state, IB_PORT_DOWN, memory_order_relaxed);
	for (uint32_t i = 0; i < gids; i++)
		s->gids[s->ngids++].port = s->nports;
	s->nports++;
}

int64_t subnet_add_node(struct subnet *s, const struct subnet_node *node, bool ethernet,
			uint32_t gids)
{
	bool is_switch = node->kind == SUBNET_SWITCH;
	uint64_t all_gids = is_switch ? gids : (uint64_t)node->nports * gids;
	uint32_t row = s->nnodes;

	if (row == s->head->table[SUBNET_TABLE_NODES].count ||
	    node->nports > s->head->table[SUBNET_TABLE_PORTS].count - s->nports ||
	    all_gids > s->head->table[SUBNET_TABLE_GIDS].count - s->ngids ||
	    (is_switch && s->nswitches == s->head->table[SUBNET_TABLE_SWITCHES].count))
		return -ENOSPC;
	s->nodes[row] = *node;
	s->nodes[row].first_port = s->nports;
	s->nodes[row].switch_index = is_switch ? s->nswitches++ : 0;
	s->nnodes++;
	for (uint32_t i = 0; i < node->nports; i++)
		port_add(s, row, is_switch ? i : i + 1, ethernet, is_switch && i ? 0 : gids);
	return row;
}

bool subnet_set_state(struct subnet *s, uint32_t row, enum ib_port_state state)
{
	_Atomic(uint32_t) *at = &s->ports[row].state;

	if (atomic_load_explicit(at, memory_order_relaxed) == (uint32_t)state)
		return false;
	atomic_store_explicit(at, (uint32_t)state, memory_order_release);
	subnet_raise_epoch(s);
	return true;
}

void subnet_set_tie(struct subnet *s, uint32_t row, uint32_t tie_plus_1)
{
	atomic_store_explicit(&s->ports[row].tie_plus_1, tie_plus_1, memory_order_release);
	subnet_raise_epoch(s);
}

/* ---- LIDs ---- */

static bool port_claims(const struct subnet_port *p, uint32_t lid)
{
	uint32_t first = atomic_load_explicit(&p->lid, memory_order_relaxed);
	uint32_t lmc = atomic_load_explicit(&p->lmc, memory_order_relaxed);

	return first && lid >= first && lid < first + (1u << lmc);
}

/* What the table has to say of a LID that several ports claimed, when 'row' no longer has it. */
static uint32_t lid_settled(const struct subnet *s, uint32_t lid, uint32_t row)
{
	uint32_t entry = 0;

	for (uint32_t i = 0; i < s->nports; i++) {
		if (i == row || !port_claims(&s->ports[i], lid))
			continue;
		if (entry)
			return entry | SUBNET_LID_CONTESTED;
		entry = i + 1;
	}
	return entry;
}

/* Takes from a port what it still has of a range of LIDs. */
static void lids_leave(struct subnet *s, uint32_t lid, uint32_t lmc, uint32_t row)
{
	for (uint32_t i = lid; lid && i < lid + (1u << lmc); i++) {
		if (subnet_lid_contested(s, (uint16_t)i))
			atomic_store_explicit(&s->lids[i], lid_settled(s, i, row),
					      memory_order_release);
		else if (subnet_port_by_lid(s, (uint16_t)i) == row)
			atomic_store_explicit(&s->lids[i], 0, memory_order_release);
	}
}

static void lids_take(struct subnet *s, uint32_t lid, uint32_t lmc, uint32_t row)
{
	for (uint32_t i = lid; lid && i < lid + (1u << lmc); i++) {
		uint32_t owner = subnet_port_by_lid(s, (uint16_t)i);
		bool others = owner != SUBNET_NONE && owner != row;

		atomic_store_explicit(&s->lids[i], (row + 1) | (others ? SUBNET_LID_CONTESTED : 0),
				      memory_order_release);
	}
}

/* True if no port other than 'row' has a LID of the range; otherwise *owner is such a port. */
static bool lids_free(const struct subnet *s, uint32_t lid, uint32_t lmc, uint32_t row,
		      uint32_t *owner)
{
	for (uint32_t i = lid; i < lid + (1u << lmc); i++) {
		*owner = subnet_port_by_lid(s, (uint16_t)i);
		if (*owner != SUBNET_NONE && *owner != row)
			return false;
	}
	return true;
}

static bool lids_valid(uint32_t lid, uint32_t lmc)
{
	return lmc <= SUBNET_MAX_LMC && !(lid & ((1u << lmc) - 1)) && lid < SUBNET_LIDS &&
	       lid + (1u << lmc) <= SUBNET_LIDS;
}

/* True if the port has the whole range, and the table says so. */
static bool lids_held(const struct subnet *s, uint32_t lid, uint32_t lmc, uint32_t row)
{
	for (uint32_t i = lid; lid && i < lid + (1u << lmc); i++)
		if (subnet_port_by_lid(s, (uint16_t)i) != row)
			return false;
	return true;
}

int subnet_claim_lid(struct subnet *s, uint32_t row, uint32_t lid, uint32_t lmc)
{
	struct subnet_port *p = &s->ports[row];
	uint32_t old = atomic_load_explicit(&p->lid, memory_order_relaxed);
	uint32_t old_lmc = atomic_load_explicit(&p->lmc, memory_order_relaxed);

	if (!lids_valid(lid, lmc))
		return -EINVAL;
	if (old == lid && old_lmc == lmc && lids_held(s, lid, lmc, row))
		return 0;
	lids_leave(s, old, old_lmc, row);
	lids_take(s, lid, lmc, row);
	atomic_store_explicit(&p->lmc, lmc, memory_order_release);
	atomic_store_explicit(&p->lid, lid, memory_order_release);
	subnet_raise_epoch(s);
	return 0;
}

int subnet_set_lid(struct subnet *s, uint32_t row, uint16_t lid, uint32_t lmc, uint32_t *owner)
{
	if (!lids_valid(lid, lmc))
		return -EINVAL;
	if (lid && !lids_free(s, lid, lmc, row, owner))
		return -EADDRINUSE;
	return subnet_claim_lid(s, row, lid, lmc);
}

/* ---- GIDs ---- */

static void gid_index_insert(struct subnet *s, uint32_t entry, const union ib_gid *gid)
{
	uint32_t i = gid_index_start(s, gid);
	uint32_t v = atomic_load_explicit(&s->gid_index[i], memory_order_relaxed);

	/* The loop ends because the index is never more than half full. */
	while (v != GID_INDEX_EMPTY && v != GID_INDEX_GONE) {
		i = (i + 1) & s->gid_index_mask;
		v = atomic_load_explicit(&s->gid_index[i], memory_order_relaxed);
	}
	atomic_store_explicit(&s->gid_index[i], entry + 1, memory_order_release);
}

static void gid_index_remove(struct subnet *s, uint32_t entry, const union ib_gid *gid)
{
	uint32_t i = gid_index_start(s, gid);

	while (atomic_load_explicit(&s->gid_index[i], memory_order_relaxed) != entry + 1)
		i = (i + 1) & s->gid_index_mask;
	atomic_store_explicit(&s->gid_index[i], GID_INDEX_GONE, memory_order_release);
	/* If EMPTY follows a GONE, no search needs to pass the GONE, as nothing stands behind
	 * it. */
	if (atomic_load_explicit(&s->gid_index[(i + 1) & s->gid_index_mask],
				 memory_order_relaxed) != GID_INDEX_EMPTY)
		return;
	while (atomic_load_explicit(&s->gid_index[i], memory_order_relaxed) == GID_INDEX_GONE) {
		atomic_store_explicit(&s->gid_index[i], GID_INDEX_EMPTY, memory_order_release);
		i = (i - 1) & s->gid_index_mask;
	}
}

static void gid_entry_write(struct subnet_gid *g, const union ib_gid *gid, uint32_t type_plus_1)
{
	uint32_t sequence = atomic_load_explicit(&g->sequence, memory_order_relaxed);

	atomic_store_explicit(&g->sequence, sequence + 1, memory_order_relaxed);
	/* Release: a reader that sees one of these stores sees the odd sequence number too. */
	atomic_store_explicit(&g->type_plus_1, type_plus_1, memory_order_release);
	atomic_store_explicit(&g->half[0], gid->half[0], memory_order_release);
	atomic_store_explicit(&g->half[1], gid->half[1], memory_order_release);
	atomic_store_explicit(&g->sequence, sequence + 2, memory_order_release);
}

static bool gid_entry_is(const struct subnet_gid *g, const struct subnet_gid_entry *entry)
{
	uint32_t type_plus_1 = atomic_load_explicit(&g->type_plus_1, memory_order_relaxed);

	if (!entry)
		return !type_plus_1;
	return type_plus_1 == (uint32_t)entry->type + 1 && gid_equals(g, &entry->gid);
}

int subnet_set_gid(struct subnet *s, uint32_t row, uint32_t index,
		   const struct subnet_gid_entry *entry, uint32_t *owner)
{
	static const union ib_gid none;
	struct subnet_port *p = &s->ports[row];
	uint32_t at = p->first_gid + index;
	struct subnet_gid *g = &s->gids[at];
	union ib_gid old;

	if (index >= p->gid_room)
		return -ERANGE;
	if (entry) {
		*owner = subnet_port_by_gid(s, &entry->gid);
		if (*owner != SUBNET_NONE && *owner != row)
			return -EADDRINUSE;
	}
	if (gid_entry_is(g, entry))
		return 0;
	if (atomic_load_explicit(&g->type_plus_1, memory_order_relaxed)) {
		old.half[0] = atomic_load_explicit(&g->half[0], memory_order_relaxed);
		old.half[1] = atomic_load_explicit(&g->half[1], memory_order_relaxed);
		gid_index_remove(s, at, &old);
	}
	gid_entry_write(g, entry ? &entry->gid : &none, entry ? (uint32_t)entry->type + 1 : 0);
	if (entry)
		gid_index_insert(s, at, &entry->gid);
	subnet_raise_epoch(s);
	return 0;
}
