/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves private memory of the program into the process's arena (exposure/expose.h), at the same
 * addresses.  It moves only what it can move unnoticed: plain private memory of bounded size and
 * number, while no other thread of the program could write to it.
 *
 * share.c calls all of these functions under its lock.
 */
#pragma once

#include "driver/runtime/share_kind.h"

/* Finds the moved memory that [addr, addr + bytes) lies in, if the program still has it there; or
 * NULL. */
struct share *moved_find(uint64_t addr, uint64_t bytes);
/* Moves the pages of a range.  NULL: the pages stay where they are.  *why gives the reason in any
 * case. */
struct share *moved_begin(struct process *p, uint64_t addr, uint64_t bytes,
			  enum key_why *why) must_check;
/* Returns where an address of this memory lies in the arena. */
uint64_t moved_offset(struct share *s, uint64_t addr);
/*
 * The memory has no users any more, so its pages move back.  These pages hold more than was
 * registered.  If the program has started threads since, they may be writing there: then the pages
 * stay in the arena without users until another registration takes them up, and a forked child gets
 * its copy as ever.
 */
void moved_end(struct share *s);

/*
 * Before fork(2): finds out which of the moved memory the program still has in its place.  The
 * child must not put back the rest, because the program may have unmapped it without deregistering
 * it, and have something else there.  True: the child may have pages to move.
 */
bool moved_fork_prepare(void);
/* The child calls this: private copies replace all moved memory that lies in its place. */
void moved_fork_child(void);
