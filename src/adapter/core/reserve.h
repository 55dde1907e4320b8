/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of QP numbers that no queue pair gets: programs give them to connections whose queue pairs
 * have numbers of another kind.  They come from chunks of their own, so that ranges stay whole.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct adapter;

#define RESERVE_RANGE  (1u << ADAPTER_LOG_RESERVED_QPNS)
#define RESERVE_RANGES (NUMBER_CHUNK / RESERVE_RANGE) /* of a chunk */

struct reserve_chunk {
	uint32_t first;
	uint32_t used; /* bit per range */
	struct reserve_chunk *next;
};

struct reserve {
	pthread_mutex_t lock;
	struct reserve_chunk *chunks;
};

void reserve_init(struct reserve *r);
void reserve_release(struct reserve *r);
