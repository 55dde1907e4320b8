/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds memory whose faults the program serves itself (userfaultfd(2)).  A thread that touches a
 * page that is not there waits until the program has supplied it, which may be never.
 *
 * /proc/self/smaps says which mappings these are, but reading it is slow, because the kernel looks
 * at the pages of every mapping that it lists.  So we note the addresses that the program has ever
 * registered with a userfaultfd, and look up only memory among these.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* The program is about to serve the faults in [addr, addr + bytes). */
void userfault_note(uint64_t addr, uint64_t bytes);
/* mremap has moved the memory, and perhaps the userfaultfd serves it at its new place. */
void userfault_moved(uint64_t from, uint64_t bytes, uint64_t to);
/* Does the program serve faults in a part of [addr, addr + bytes)?  This costs nothing for a
 * program that serves none. */
bool userfault_serves(uint64_t addr, uint64_t bytes) must_check;

/* Called around fork(2). */
void userfault_fork_lock(void);
void userfault_fork_unlock(void);
