/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that is sent as several packets, in memory that does not change any more: packets of it, and
 * whoever has received all of it, hold it instead of copies.
 */
#pragma once

#include "fabric/daemon/mad/rmpp.h"

struct rmpp_source {
	struct rmpp_message message;
	uint32_t refs;
	int file; /* has the message too, sealed, from 'file_at' to its end; -1: none */
	uint32_t file_at;
	void *map; /* of the file, or NULL */
	size_t map_bytes;
	uint8_t bytes[];
};

/* A copy.  NULL: no memory, or shorter than its class's headers. */
struct rmpp_source *rmpp_source_copy(const uint8_t *message, uint32_t length);
/* What a sealed file has from 'at' to its end; the descriptor stays the caller's.  NULL: it may change, or there is no
 * memory; then it can be read and copied. */
struct rmpp_source *rmpp_source_map(int file, uint32_t at, uint32_t length);

static inline struct rmpp_source *rmpp_source_get(struct rmpp_source *s)
{
	s->refs++;
	return s;
}

void rmpp_source_put(struct rmpp_source *s); /* NULL: nothing */
