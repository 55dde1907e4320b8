/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of /proc, also for a program that has left its sight (chroot), or has no descriptor left:
 * two descriptors that the program does not know of are kept for that.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Keeps what that takes, from the first of these calls to the last of those.  Without room for it
 * all works as without the call. */
void proc_file_keep(void);
void proc_file_drop(void);
/* Reads a small file whole, by its name below /proc, and ends it with a zero: its length, or
 * negative errno. */
ssize_t proc_file_read(const char *name, char *text, size_t size);
/* The same without what is kept, so without its lock, which the caller may have interrupted. */
ssize_t proc_file_read_bare(const char *name, char *text, size_t size);
/* In a forked child, which has not got the descriptors. */
void proc_file_fork_child(void);
