/* SPDX-License-Identifier: BSD-2-Clause */
/* What both sides of the example know of a task: it lies in DPA memory, filled in by the host. */
#pragma once

#include <stdint.h>

struct task {
	uint64_t from, to; /* numbers to look at */
	uint64_t primes;   /* how many of them are prime: the result */
	uint64_t runs;	   /* how often the task ran */
};
