/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that is sent as several packets, in memory that stays.  Its packets, and receivers that
 * have all of it, hold it instead of copies.  The maker of a message's file could still change it,
 * and spoil what he sends himself; so only what has been checked once says where which bytes are.
 */
#pragma once

#include "fabric/daemon/mad/rmpp.h"

struct rmpp_source {
	struct rmpp_message message;
	uint32_t refs;
	int file; /* a file that has the message too, from 'file_at' to its end; -1: none */
	uint64_t file_at;
	void *map; /* mapping of the file, or NULL */
	size_t map_bytes;
	uint8_t bytes[];
};

/* Makes a copy.  NULL: no memory, or the message is shorter than its class's headers. */
struct rmpp_source *rmpp_source_copy(const uint8_t *message, uint32_t length);
/* Takes the end of a file of fixed size, which begins with the bytes at 'first'; the caller keeps
 * the descriptor.  NULL: its size may change, or there is no memory; then the caller can read and
 * copy it. */
struct rmpp_source *rmpp_source_map(int file, const uint8_t *first, uint32_t length);

static inline struct rmpp_source *rmpp_source_get(struct rmpp_source *s)
{
	s->refs++;
	return s;
}

void rmpp_source_put(struct rmpp_source *s); /* NULL: does nothing */
