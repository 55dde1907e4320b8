/* SPDX-License-Identifier: BSD-2-Clause */
/* What both parts of the program of tests/flexio/memory know. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ROUNDS 200u
#define BYTES  200u

/* Memory of the host; each word has a line of its own. */
struct shared {
	uint64_t question __attribute__((aligned(64)));
	uint64_t data __attribute__((aligned(64)));
	uint64_t answer __attribute__((aligned(64)));
	uint8_t bytes[BYTES] __attribute__((aligned(64)));
};

/* How the device reaches it; lies in memory of the process. */
struct window {
	uint64_t id, key, host, step;
	uint64_t other_key, other_host; /* reached by the thread's other window */
};
