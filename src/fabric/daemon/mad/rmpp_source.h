/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that is sent as several packets, in memory that stays: packets of it, and whoever has received
 * all of it, hold it instead of copies.  Who has made the file of a message could still change it, and
 * spoil what he sends himself; so only what has been looked at once says where which bytes are.
 */
#pragma once

#include "fabric/daemon/mad/rmpp.h"

struct rmpp_source {
	struct rmpp_message message;
	uint32_t refs;
	int file; /* has the message too, from 'file_at' to its end; -1: none */
	uint64_t file_at;
	void *map; /* of the file, or NULL */
	size_t map_bytes;
	uint8_t bytes[];
};

/* A copy.  NULL: no memory, or shorter than its class's headers. */
struct rmpp_source *rmpp_source_copy(const uint8_t *message, uint32_t length);
/* The end of a file of fixed size, which begins with the bytes at 'first'; the descriptor stays the caller's.  NULL: its
 * size may change, or there is no memory; then it can be read and copied. */
struct rmpp_source *rmpp_source_map(int file, const uint8_t *first, uint32_t length);

static inline struct rmpp_source *rmpp_source_get(struct rmpp_source *s)
{
	s->refs++;
	return s;
}

void rmpp_source_put(struct rmpp_source *s); /* NULL: nothing */
