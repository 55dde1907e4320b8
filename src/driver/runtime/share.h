/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory that peers may reach by themselves, so that an RDMA WRITE from another process is
 * a copy and nothing more.  Shared files of the program are laid open as they are (file_share.h).
 * Private memory moves into the process's arena if SOFTHCA_MEMORY asks for that (moved.h).
 *
 * The program sees no change: same address, same content, and a forked child gets a private copy of
 * private memory as ever.  Of memory that is not open to peers, packets carry the data, or the
 * kernel copies it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "exposure/expose.h"

struct process;
struct share;

/* Where addr is open to peers: a file, the offset there, and a reference that keeps it so. */
struct shared_at {
	struct segment_ref segment;
	uint64_t offset;
	struct share *share;
	enum key_why why; /* it is open, or not */
};

/* False: it is not open to peers, and out->why says why. */
bool share_begin(struct process *p, uint64_t addr, uint64_t bytes,
		 struct shared_at *out) must_check;
/* Moved pages go back with the last reference, unless a thread might notice.  NULL is nothing. */
void share_end(struct share *s);

/* Around fork(2).  In the child all shared pages become private copies. */
void share_fork_prepare(void);
void share_fork_parent(void);
void share_fork_child(void);
