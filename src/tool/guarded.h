/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that another program may hold up: a read of its memory waits if it serves the faults itself
 * (userfaultfd, FUSE), for as long as it likes.  So a child does the work, and is killed if need
 * be.
 */
#pragma once

#include <stdbool.h>

/* Calls work(arg) in a child.  False: it did not return within 'milliseconds', or not at all.  What
 * it is to leave must lie in shared memory. */
bool guarded_run(void (*work)(void *arg), void *arg, int milliseconds);
