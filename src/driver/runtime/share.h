/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens registered memory to peers, so that an RDMA WRITE from another process is a copy and
 * nothing more.  Shared files of the program are opened as they are (file_share.h).  If memory is not
 * open to peers, packets carry the data, or the kernel copies it.
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
	enum key_why why; /* why it is open, or why not */
};

/* False: the memory is not open to peers, and out->why says why. */
bool share_begin(struct process *p, uint64_t addr, uint64_t bytes,
		 struct shared_at *out) must_check;
/* Drops the reference.  Does nothing for NULL. */
void share_end(struct share *s);

/* Called around fork(2). */
void share_fork_lock(void);
void share_fork_unlock(void);
