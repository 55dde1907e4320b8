/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run: contiguous bytes of memory.  Keys are resolved into lists of runs, and whatever moves data
 * takes such lists.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct run {
	void *addr;
	size_t len;
};

/* How many runs a list may have that is copied as one. */
#define RUNS_MAX 64

/* A destination that drops what would go there. */
#define RUN_DISCARD ((void *)UINTPTR_MAX)
