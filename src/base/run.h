/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run: contiguous bytes of memory.  Keys resolve addresses into lists of runs, and all code that
 * moves data takes such lists.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct run {
	void *addr;
	size_t len;
};

/* The most runs of a list that is copied as one. */
#define RUNS_MAX 64

/* A destination that drops the bytes copied to it. */
#define RUN_DISCARD ((void *)UINTPTR_MAX)
