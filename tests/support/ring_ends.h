/* SPDX-License-Identifier: BSD-2-Clause */
/* Both ends of a ring in one process.  The test says where the ring's memory is. */
#pragma once

#include <string.h>

#include "check.h"
#include "wire/ring.h"

#define SIZE RING_MIN_BYTES

static struct ring_shared shared;
static unsigned char *data;
static struct ring tx, rx;

static inline void fresh_ring(void)
{
	memset(&shared, 0, sizeof(shared));
	memset(data, 0, SIZE);
	CHECK(!ring_open_producer(&tx, &shared, data, SIZE));
	CHECK(!ring_open_consumer(&rx, &shared, data, SIZE));
}

static inline bool give_back(void)
{
	return ring_give_back(&rx);
}
