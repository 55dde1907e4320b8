/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The backing file: a header of 4096 bytes, then the blocks one after the other, each with its
 * protection information behind it, as on a disk formatted with 520-byte (or 4104-byte) sectors.
 * Units travel between file and buffers as they are: nothing is checked here.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "dif.h"

#define STORE_HEADER_BYTES 4096u
#define STORE_BLOCKS_MAX   ((uint64_t)1 << 40)

struct store {
	int fd;
	struct dif_format format;
	uint64_t blocks;
	/* A reader must not see half of another client's write: its guard would be wrong. */
	pthread_rwlock_t lock;
};

/* These complain on stderr and return false if something is wrong. */
bool store_format(const char *path, const struct dif_format *format, uint64_t blocks,
		  uint64_t seed);
bool store_open(struct store *s, const char *path, bool writable);
void store_close(struct store *s);

/* count units from block on, which must lie in the store.  0 or -errno. */
int store_read(struct store *s, uint64_t block, uint32_t count, void *units);
int store_write(struct store *s, uint64_t block, uint32_t count, const void *units);
