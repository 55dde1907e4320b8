/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory whose faults the program serves itself (userfaultfd(2)): whoever touches a page that is
 * not there waits until the program has supplied it, which may be never.
 *
 * The kernel says in /proc/self/smaps which mappings these are, but is slow to: it looks at the
 * pages of all that it lists.  So the addresses that the program has ever registered are noted, and
 * only memory among these is looked up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* The program is about to have faults in [addr, addr + bytes) served. */
void userfault_note(uint64_t addr, uint64_t bytes);
/* mremap has moved the memory, and perhaps the serving along with it. */
void userfault_moved(uint64_t from, uint64_t bytes, uint64_t to);
/* Are faults in a part of [addr, addr + bytes) served?  Costs nothing for a program that has
 * none. */
bool userfault_serves(uint64_t addr, uint64_t bytes) must_check;

/* Around fork(2). */
void userfault_fork_lock(void);
void userfault_fork_unlock(void);
