/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells of stores to chosen pages of our own address space: userfaultfd(2) in write-protect mode,
 * for faults of user mode only, which needs no privilege.  A thread that stores to a protected page
 * gets SIGBUS (UFFD_FEATURE_SIGBUS), so it hears of the store itself, and nobody has to be woken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct uffd;

/* -ENOSYS, -EPERM or -EINVAL where the system does not allow it. */
int uffd_open(struct uffd **out) must_check;
/* Ends all protection. */
void uffd_close(struct uffd *u);
/* The same without waiting, for signal handlers; the protection ends a moment later. */
void uffd_abandon(struct uffd *u);
/* The forked child calls this: it has neither the thread nor the protection. */
void uffd_fork_child(struct uffd *u);

/* Whole pages of a shared or anonymous mapping.  Call uffd_add first, once for each mapping. */
int uffd_add(struct uffd *u, uintptr_t addr, size_t len) must_check;
int uffd_protect(struct uffd *u, uintptr_t addr, size_t len, bool on) must_check;
