/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads files of /proc, also for a program that no longer sees /proc (chroot) or has no descriptor
 * left: for that, softhca keeps two descriptors that the program does not know of.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Keep and drop the descriptors; the first keep opens them and the last drop closes them.  Without
 * room for them everything works as if nobody had called. */
void proc_file_keep(void);
void proc_file_drop(void);
/* Reads a small file whole, by its name below /proc, and appends a zero byte.  Returns its length,
 * or negative errno. */
ssize_t proc_file_read(const char *name, char *text, size_t size);
/* The same without the descriptors, and so without their lock, which the caller may have
 * interrupted. */
ssize_t proc_file_read_bare(const char *name, char *text, size_t size);
/* Called in a forked child, which does not have the descriptors. */
void proc_file_fork_child(void);
