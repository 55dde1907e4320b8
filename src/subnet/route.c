// SPDX-License-Identifier: BSD-2-Clause
/* Looks things up; see subnet.h.  The daemon may change them meanwhile. */
#include "subnet/gid_index.h"

#include <stdio.h>

/* The daemon may die while it writes an entry.  After this many attempts the entry counts as
 * empty. */
#define GID_READ_ATTEMPTS 1000

const char *subnet_port_text(const struct subnet *s, uint32_t row, char text[SUBNET_PORT_TEXT])
{
	if (row >= s->nports)
		(void)snprintf(text, SUBNET_PORT_TEXT, "nowhere");
	else
		(void)snprintf(text, SUBNET_PORT_TEXT, "host%u/%.15s",
			       subnet_node_of(s, row)->host + 1, subnet_node_of(s, row)->name);
	return text;
}

uint32_t subnet_port_by_gid(const struct subnet *s, const union ib_gid *gid)
{
	uint32_t i = gid_index_start(s, gid);

	for (uint64_t n = 0; n <= s->gid_index_mask; n++, i = (i + 1) & s->gid_index_mask) {
		uint32_t v = atomic_load_explicit(&s->gid_index[i], memory_order_acquire);

		if (v == GID_INDEX_EMPTY)
			break;
		if (v != GID_INDEX_GONE && v <= s->ngids && gid_equals(&s->gids[v - 1], gid))
			return s->gids[v - 1].port;
	}
	return SUBNET_NONE;
}

/* Copies the entry once; false: it changed meanwhile. */
static bool gid_entry_copy(const struct subnet_gid *g, uint32_t *type_plus_1,
			   struct subnet_gid_entry *out)
{
	uint32_t before = atomic_load_explicit(&g->sequence, memory_order_acquire);

	*type_plus_1 = atomic_load_explicit(&g->type_plus_1, memory_order_acquire);
	/* Acquire, so that the second load of the sequence number comes last. */
	out->gid.half[0] = atomic_load_explicit(&g->half[0], memory_order_acquire);
	out->gid.half[1] = atomic_load_explicit(&g->half[1], memory_order_acquire);
	return !(before & 1) && atomic_load_explicit(&g->sequence, memory_order_relaxed) == before;
}

bool subnet_gid(const struct subnet *s, uint32_t row, uint32_t index, struct subnet_gid_entry *out)
{
	const struct subnet_port *p = &s->ports[row];
	uint32_t type_plus_1;

	if (index >= p->gid_room)
		return false;
	for (int i = 0; i < GID_READ_ATTEMPTS; i++) {
		if (!gid_entry_copy(&s->gids[p->first_gid + index], &type_plus_1, out))
			continue;
		out->type = (enum gid_type)(type_plus_1 - 1);
		return type_plus_1 != 0;
	}
	return false;
}

bool subnet_walk(const struct subnet *s, uint32_t from, uint32_t to)
{
	return subnet_port_active(s, from) && subnet_port_active(s, to) &&
	       s->ports[from].ethernet == s->ports[to].ethernet &&
	       subnet_node_of(s, from)->kind == SUBNET_HCA &&
	       subnet_node_of(s, to)->kind == SUBNET_HCA;
}
