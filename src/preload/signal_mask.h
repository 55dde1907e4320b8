/* SPDX-License-Identifier: BSD-2-Clause */
/* Signal masks that a program gives, without the faults of the device (signal.c). */
#pragma once

#include <signal.h>

/*
 * Returns the mask for a wait in place of the program's; room is for a changed copy.  Handlers run in
 * a wait, and they may ring doorbells.  A mask that cannot be read stays the kernel's to refuse.
 */
const sigset_t *signal_wait_mask(const sigset_t *mask, sigset_t *room);
