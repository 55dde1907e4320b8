/* SPDX-License-Identifier: BSD-2-Clause */
/* The other end: a program of plain verbs, which knows nothing of a DPA. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

/* What both ends tell each other over TCP. */
struct address {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t lid;
	uint32_t rkey;
	uint32_t reserved;
	uint64_t memory;
};

/* Meets the other program at that port, waits for its numbers, and says what has come; 0: they are right. */
int target_run(const char *host, uint16_t port);
void exchange(int socket, const struct address *ours, struct address *theirs);
