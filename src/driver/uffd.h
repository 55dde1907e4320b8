/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells of stores to chosen pages of our own address space: userfaultfd(2) in write-protect mode,
 * for faults of user mode only, which needs no privilege.  Whoever stores to a protected page waits
 * until a thread of ours has lifted the protection and has told of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct uffd;

/*
 * touched runs on that thread, after the page at addr was let go: it may take locks, but not one
 * under which our own threads store to such a page.  -ENOSYS, -EPERM or -EINVAL where the system
 * does not allow it.
 */
int uffd_open(void (*touched)(void *user, uintptr_t addr), void *user,
	      struct uffd **out) must_check;
/* Lets go whoever waits. */
void uffd_close(struct uffd *u);
/* In a forked child, which has neither the thread nor the protection. */
void uffd_fork_child(struct uffd *u);

/* Whole pages of a shared or anonymous mapping; first add, once for each mapping. */
int uffd_add(struct uffd *u, uintptr_t addr, size_t len) must_check;
int uffd_protect(struct uffd *u, uintptr_t addr, size_t len, bool on) must_check;
