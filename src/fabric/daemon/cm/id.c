// SPDX-License-Identifier: BSD-2-Clause
/* Ids and their numbers; what all other files here stand on. */
#include <stdlib.h>

#include "fabric/daemon/cm/id.h"

/* ---- numbers ---- */

static struct cm_ids *ids_of(const struct cm *c, uint32_t host)
{
	struct cm_ids *ids = c->ids;

	while (ids && ids->host < host)
		ids = ids->next;
	return ids && ids->host == host ? ids : NULL;
}

/* The same, made if there is none; NULL: there is no memory. */
static struct cm_ids *ids_make(struct cm *c, uint32_t host)
{
	struct cm_ids *ids = ids_of(c, host), **at = &c->ids;

	if (ids)
		return ids;
	ids = calloc(1, sizeof(*ids));
	if (!ids)
		return NULL;
	while (*at && (*at)->host < host)
		at = &(*at)->next;
	ids->host = host;
	ids->next = *at;
	*at = ids;
	return ids;
}

struct cm_id *cm_id_find(const struct cm_file *f, uint32_t number)
{
	const struct cm_ids *ids = ids_of(f->cm, f->host);

	return ids && number < CM_IDS ? ids->by_number[number] : NULL;
}

/* The first of those ids from that number on. */
static struct cm_id *next_of(const struct cm_ids *ids, uint32_t from)
{
	for (uint32_t word = from / 64; word < CM_IDS / 64; word++) {
		uint64_t bits = ids->used[word];

		if (word == from / 64)
			bits &= ~0ull << from % 64;
		if (bits)
			return ids->by_number[word * 64 + (uint32_t)__builtin_ctzll(bits)];
	}
	return NULL;
}

struct cm_id *cm_id_next(const struct cm *c, uint32_t host, uint32_t from)
{
	for (const struct cm_ids *ids = c->ids; ids; ids = ids->next) {
		struct cm_id *id =
			ids->host < host ? NULL : next_of(ids, ids->host == host ? from : 0);

		if (id)
			return id;
	}
	return NULL;
}

struct cm_id *cm_id_first(const struct cm *c)
{
	return cm_id_next(c, 0, 0);
}

struct cm_id *cm_id_after(const struct cm_id *id)
{
	return cm_id_next(id->cm, id->ids->host, id->number + 1);
}

void cm_ids_free(struct cm *c)
{
	for (struct cm_ids *ids = c->ids, *next; ids; ids = next) {
		next = ids->next;
		free(ids);
	}
	free(c->chains);
	c->ids = NULL;
	c->chains = NULL;
}

/* ---- tables ---- */

static struct cm_id **chain_of(const struct cm *c, enum cm_table table, uint32_t key)
{
	return &c->chains->of[table][key % CM_CHAINS];
}

struct cm_id *cm_id_chain(const struct cm *c, enum cm_table table, uint32_t key)
{
	return c->chains ? *chain_of(c, table, key) : NULL;
}

struct cm_id *cm_id_of_message(const struct cm *c, uint32_t local_id)
{
	struct cm_id *id = cm_id_chain(c, CM_BY_LOCAL_ID, local_id);

	while (id && id->local_id != local_id)
		id = id->chain[CM_BY_LOCAL_ID].next;
	return id;
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

/* ---- making and freeing ---- */

/* The lowest number that is free, or CM_IDS. */
static uint32_t number_free(const struct cm_ids *ids)
{
	for (uint32_t word = 0; word < CM_IDS / 64; word++)
		if (~ids->used[word])
			return word * 64 + (uint32_t)__builtin_ctzll(~ids->used[word]);
	return CM_IDS;
}

/* A number for messages that no id has; the last one given is given again as late as possible. */
static uint32_t local_id_free(struct cm *c)
{
	do
		c->last_local_id++;
	while (cm_id_of_message(c, c->last_local_id));
	return c->last_local_id;
}

struct cm_id *cm_id_make(struct cm_file *f)
{
	struct cm *c = f->cm;
	struct cm_ids *ids = ids_make(c, f->host);
	const uint32_t number = ids ? number_free(ids) : CM_IDS;
	struct cm_id *id;

	if (!c->chains)
		c->chains = calloc(1, sizeof(*c->chains));
	id = c->chains && number < CM_IDS ? calloc(1, sizeof(*id)) : NULL;
	if (!id)
		return NULL;
	id->cm = c;
	id->file = f;
	id->ids = ids;
	id->number = number;
	id->row = id->peer_row = SUBNET_NONE;
	id->local_id = local_id_free(c);
	cm_id_key(id, CM_BY_LOCAL_ID, id->local_id);
	ids->by_number[number] = id;
	ids->used[number / 64] |= 1ull << number % 64;
	return id;
}

void cm_id_free(struct cm_id *id)
{
	struct cm_ids *ids = id->ids;

	for (unsigned table = 0; table < CM_TABLES; table++)
		chain_leave(id, table);
	ids->by_number[id->number] = NULL;
	ids->used[id->number / 64] &= ~(1ull << id->number % 64);
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
