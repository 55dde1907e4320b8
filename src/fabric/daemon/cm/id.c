// SPDX-License-Identifier: BSD-2-Clause
/* Ids and their numbers; what all other files here stand on. */
#include <stdlib.h>

#include "fabric/daemon/cm/id.h"

struct cm_id *cm_id_find(const struct cm *c, uint32_t number)
{
	return c->ids && number < CM_IDS ? c->ids->by_number[number] : NULL;
}

struct cm_id *cm_id_next(const struct cm *c, uint32_t from)
{
	for (uint32_t word = from / 64; c->ids && word < CM_IDS / 64; word++) {
		uint64_t bits = c->ids->used[word];

		if (word == from / 64)
			bits &= ~0ull << from % 64;
		if (bits)
			return c->ids->by_number[word * 64 + (uint32_t)__builtin_ctzll(bits)];
	}
	return NULL;
}

static struct cm_id **chain_of(const struct cm *c, enum cm_table table, uint32_t key)
{
	return &c->ids->chains[table][key % CM_CHAINS];
}

struct cm_id *cm_id_chain(const struct cm *c, enum cm_table table, uint32_t key)
{
	return c->ids ? *chain_of(c, table, key) : NULL;
}

static void chain_leave(struct cm_id *id, enum cm_table table)
{
	struct cm_id *next = id->chain[table].next;

	if (!id->chain[table].prev)
		return;
	*id->chain[table].prev = next;
	if (next)
		next->chain[table].prev = id->chain[table].prev;
}

void cm_id_key(struct cm_id *id, enum cm_table table, uint32_t key)
{
	struct cm_id **head = chain_of(id->cm, table, key);

	chain_leave(id, table);
	id->chain[table].prev = head;
	id->chain[table].next = *head;
	if (*head)
		(*head)->chain[table].prev = &id->chain[table].next;
	*head = id;
}

/* The lowest number that is free, or CM_IDS. */
static uint32_t number_free(const struct cm_ids *ids)
{
	for (uint32_t word = 0; word < CM_IDS / 64; word++)
		if (~ids->used[word])
			return word * 64 + (uint32_t)__builtin_ctzll(~ids->used[word]);
	return CM_IDS;
}

struct cm_id *cm_id_make(struct cm_file *f)
{
	struct cm *c = f->cm;
	uint32_t number;
	struct cm_id *id;

	if (!c->ids)
		c->ids = calloc(1, sizeof(*c->ids));
	number = c->ids ? number_free(c->ids) : CM_IDS;
	id = number < CM_IDS ? calloc(1, sizeof(*id)) : NULL;
	if (!id)
		return NULL;
	id->cm = c;
	id->file = f;
	id->number = number;
	id->row = id->peer_row = SUBNET_NONE;
	id->local_id = ++c->generation << 16 | number;
	c->ids->by_number[number] = id;
	c->ids->used[number / 64] |= 1ull << number % 64;
	return id;
}

void cm_id_free(struct cm_id *id)
{
	struct cm *c = id->cm;

	for (unsigned table = 0; table < CM_TABLES; table++)
		chain_leave(id, table);
	c->ids->by_number[id->number] = NULL;
	c->ids->used[id->number / 64] &= ~(1ull << id->number % 64);
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
