/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program does with umad and issm files in the moment when it is killed or stopped, on a host with two
 * ports, and what must be free again when it has gone. */
#pragma once

#include "checklist.h"

/* It has both ends of a pair open and registered. */
struct victim {
	struct pair p;
	uint16_t lid;
	uint64_t tid;
	struct letter letter, long_letter; /* of several packets, and of many */
};

struct operation {
	const char *name;
	void (*run)(struct victim *v);
	bool ends; /* in one process, and by itself */
};

#define OPERATIONS 10u
extern const struct operation operations[OPERATIONS];

struct victim victim_open(void);
/* A descriptor or -errno. */
int issm_file(unsigned port, int flags);
bool all_is_free(void);
