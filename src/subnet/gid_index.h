/* SPDX-License-Identifier: BSD-2-Clause */
/* The index of the GIDs: where a search begins, and what an entry says. */
#pragma once

#include "subnet/subnet.h"

#define GID_INDEX_EMPTY 0u
#define GID_INDEX_GONE	0xffffffffu /* was in use; a search goes on past it */

static inline uint32_t gid_index_start(const struct subnet *s, const union ib_gid *gid)
{
	uint64_t h =
		(gid->half[0] ^ (gid->half[1] * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;

	return (uint32_t)(h >> 32) & s->gid_index_mask;
}

static inline bool gid_equals(const struct subnet_gid *g, const union ib_gid *gid)
{
	return atomic_load_explicit(&g->half[0], memory_order_relaxed) == gid->half[0] &&
	       atomic_load_explicit(&g->half[1], memory_order_relaxed) == gid->half[1];
}
