// SPDX-License-Identifier: BSD-2-Clause
/* A hash table of indices; see names.h. */
#include "fabric/daemon/topology/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MIN_SIZE 64u

/* FNV-1a. */
static uint32_t name_hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

static void place_put(uint32_t *place, uint32_t size, const char *name, uint32_t index)
{
	uint32_t i = name_hash(name) & (size - 1);

	while (place[i])
		i = (i + 1) & (size - 1);
	place[i] = index + 1;
}

/* Keeps the table at most half full. */
static int names_grow(struct names *n, const void *array, name_of *of)
{
	uint32_t size = n->size ? n->size * 2 : NAMES_MIN_SIZE;
	uint32_t *place;

	if (n->count < n->size / 2)
		return 0;
	place = calloc(size, sizeof(*place));
	if (!place)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->count; i++)
		place_put(place, size, of(array, i), i);
	free(n->place);
	n->place = place;
	n->size = size;
	return 0;
}

int names_add(struct names *n, const void *array, name_of *of, const char *name)
{
	int ret;

	if (names_find(n, array, of, name) >= 0)
		return -EEXIST;
	ret = names_grow(n, array, of);
	if (ret)
		return ret;
	place_put(n->place, n->size, name, n->count);
	n->count++;
	return 0;
}

int64_t names_find(const struct names *n, const void *array, name_of *of, const char *name)
{
	if (!n->size)
		return -ENOENT;
	for (uint32_t i = name_hash(name) & (n->size - 1); n->place[i]; i = (i + 1) & (n->size - 1))
		if (!strcmp(of(array, n->place[i] - 1), name))
			return n->place[i] - 1;
	return -ENOENT;
}

void names_free(struct names *n)
{
	free(n->place);
	*n = (struct names){0};
}
