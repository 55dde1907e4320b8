/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory that peers may reach by themselves: its pages are moved into the process's
 * arena (wire/expose.h), at the same addresses, so that an RDMA WRITE from another process is a
 * copy and nothing more.
 *
 * The program sees no change: same address, same content, and a forked child gets a private
 * copy as ever.  It is done only where nobody can notice the move: plain private memory, no other
 * thread of the program that might write while it moves, a bounded size and number.  Otherwise, and
 * with SOFTHCA_EXPOSE=0, packets carry the data.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"

struct process;
struct share;

/* The offset of addr in the arena and a reference to the pages, or a negative errno: not shared. */
int64_t share_begin(struct process *p, uint64_t addr, uint64_t bytes,
		    struct share **out) must_check;
/* The last reference moves the pages back, unless a thread might notice. NULL is nothing. */
void share_end(struct share *s);

/* Around fork(2).  In the child all shared pages become private copies. */
void share_fork_prepare(void);
void share_fork_parent(void);
void share_fork_child(void);
