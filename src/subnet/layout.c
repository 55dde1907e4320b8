// SPDX-License-Identifier: BSD-2-Clause
/* Lays out the tables in the block; see subnet.h. */
#include <errno.h>
#include <string.h>

#include "subnet/subnet.h"

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
