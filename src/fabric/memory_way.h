/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of --memory and SOFTHCA_MEMORY, which the tool checks and programs follow. */
#pragma once

#include <string.h>

#include "base/compiler.h"

/* How peers reach the memory of a program; softhca(1), --memory. */
enum memory_way {
	MEMORY_AUTO,
	MEMORY_KERNEL,
	MEMORY_PACKETS,
	MEMORY_WAYS /* how many ways there are */
};

#define MEMORY_WAY_NAMES "auto, kernel or packets"

/* Returns the way of that name, or MEMORY_WAYS if there is none. */
static inline enum memory_way memory_way_find(const char *name)
{
	static const char *const names[MEMORY_WAYS] = {"auto", "kernel", "packets"};
	unsigned i = 0;

	while (i < MEMORY_WAYS && strcmp(name, names[i]) != 0)
		i++;
	return (enum memory_way)i;
}
