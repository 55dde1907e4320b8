// SPDX-License-Identifier: BSD-2-Clause
/* Ids and their numbers; what all other files here stand on. */
#include <stdlib.h>

#include "fabric/daemon/cm/id.h"

struct cm_id *cm_id_find(const struct cm *c, uint32_t number)
{
	return c->ids && number < CM_IDS ? c->ids[number] : NULL;
}

struct cm_id *cm_id_next(const struct cm *c, uint32_t from)
{
	for (uint32_t word = from / 64; c->ids && word < CM_IDS / 64; word++) {
		uint64_t bits = c->used[word];

		if (word == from / 64)
			bits &= ~0ull << from % 64;
		if (bits)
			return c->ids[word * 64 + (uint32_t)__builtin_ctzll(bits)];
	}
	return NULL;
}

/* The lowest number that is free, or CM_IDS. */
static uint32_t number_free(const struct cm *c)
{
	for (uint32_t word = 0; word < CM_IDS / 64; word++)
		if (~c->used[word])
			return word * 64 + (uint32_t)__builtin_ctzll(~c->used[word]);
	return CM_IDS;
}

struct cm_id *cm_id_make(struct cm_file *f)
{
	struct cm *c = f->cm;
	const uint32_t number = number_free(c);
	struct cm_id *id;

	if (!c->ids)
		c->ids = calloc(CM_IDS, sizeof(*c->ids));
	id = c->ids && number < CM_IDS ? calloc(1, sizeof(*id)) : NULL;
	if (!id)
		return NULL;
	id->cm = c;
	id->file = f;
	id->number = number;
	id->row = id->peer_row = SUBNET_NONE;
	id->local_id = ++c->generation << 16 | number;
	c->ids[number] = id;
	c->used[number / 64] |= 1ull << number % 64;
	return id;
}

void cm_id_free(struct cm_id *id)
{
	struct cm *c = id->cm;

	c->ids[id->number] = NULL;
	c->used[id->number / 64] &= ~(1ull << id->number % 64);
	free(id);
}

uint32_t cm_random(struct cm *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 17;
	c->random ^= c->random << 5;
	return c->random;
}

struct cm_file *cm_file_find(const struct cm *c, uint64_t token)
{
	struct cm_file *f = c->files;

	while (f && f->token != token)
		f = f->next;
	return f;
}
