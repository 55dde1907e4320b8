/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private memory of the program, moved into the process's arena (exposure/expose.h), at the same
 * addresses.  It is done only where nobody can notice: plain private memory, no other thread of the
 * program that might write while it moves, a bounded size and number.
 *
 * share.c calls all of these under its lock.
 */
#pragma once

#include "driver/runtime/share_kind.h"

/* The moved memory that [addr, addr + bytes) lies in, if the program has it there still; or NULL. */
struct share *moved_find(uint64_t addr, uint64_t bytes);
/* Moves the pages of a range.  NULL: they stay where they are.  *why says why, in any case. */
struct share *moved_begin(struct process *p, uint64_t addr, uint64_t bytes,
			  enum key_why *why) must_check;
/* Where an address in it lies in the arena. */
uint64_t moved_offset(struct share *s, uint64_t addr);
/*
 * It has no users any more: the pages move back.  They hold more than was registered, and a program
 * that has started threads since may be writing there.  Then they stay in the arena without users
 * until another registration takes them up, and a forked child gets its copy as ever.
 */
void moved_end(struct share *s);

/*
 * Before fork(2): finds out what lies where it was.  The rest must not be put back in a child: the
 * program may have unmapped it, registered as it is, and have something else there.  True: a child
 * may have pages to move.
 */
bool moved_fork_prepare(void);
/* In the child: private copies take the place of all that lies where it was. */
void moved_fork_child(void);
