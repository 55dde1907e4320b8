/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run: contiguous bytes in this process.  Keys are resolved into lists of them, and whatever
 * moves data takes such lists.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct run {
	void *addr;
	size_t len;
};

/* Of a list that is copied as one: how many runs it may have. */
#define RUNS_MAX 64

/* Of a destination: what would go there is dropped. */
#define RUN_DISCARD ((void *)UINTPTR_MAX)
