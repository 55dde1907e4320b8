/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of QP numbers that no queue pair gets.  Programs give them to connections whose queue
 * pairs have numbers of another kind.  The ranges come from chunks of their own, so that they stay
 * whole.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct adapter;

#define RESERVE_RANGE  (1u << ADAPTER_LOG_RESERVED_QPNS)
#define RESERVE_RANGES (NUMBER_CHUNK / RESERVE_RANGE) /* ranges of a chunk */

struct reserve_chunk {
	uint32_t first;
	uint32_t used; /* a bit for each range */
	struct reserve_chunk *next;
};

struct reserve {
	pthread_mutex_t lock;
	struct reserve_chunk *chunks;
};

void reserve_init(struct reserve *r);
void reserve_release(struct reserve *r);
