// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/daemon/descriptor.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many users beside the first a descriptor has, by its number; beyond the end: none. */
static uint32_t *others;
static size_t nothers;

static bool others_grow(size_t want)
{
	uint32_t *grown = realloc(others, want * 2 * sizeof(*others));

	if (!grown)
		return false;
	memset(grown + nothers, 0, (want * 2 - nothers) * sizeof(*others));
	others = grown;
	nothers = want * 2;
	return true;
}

bool descriptor_hold(int fd)
{
	if ((size_t)fd >= nothers && !others_grow((size_t)fd + 1))
		return false;
	others[fd]++;
	return true;
}

void descriptor_put(int fd)
{
	if ((size_t)fd < nothers && others[fd])
		others[fd]--;
	else
		close(fd);
}
