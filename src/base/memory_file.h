/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The size of our own files in memory.  They belong to the device and not to the program, so the
 * program's limit of file sizes (RLIMIT_FSIZE) is not to hold for them; and its signal, which ends
 * a process, is never raised on their account.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Gives a file its size.  Returns 0 or -errno: -EFBIG if the limit cannot be lifted for it, which
 * the log then tells by the limit's name.  The limit of the process stays as it is.
 */
int memory_file_resize(int fd, uint64_t bytes) must_check;

/* Gives a file this text and no other.  Returns 0 or -errno. */
int memory_file_store(int fd, const char *text, size_t n) must_check;

/* Gives the end of a file, from 'at' on, these bytes.  Returns 0 or -errno. */
int memory_file_fill(int fd, uint64_t at, const void *bytes, size_t n) must_check;

/*
 * A new file of this name, closed in exec, that holds 'n' bytes and that nobody can change any more.
 * Returns its descriptor, -EFAULT if the bytes cannot be read, or -ENOMEM: who sends a message this
 * way wants memory for a copy, whatever it was that there was none of.
 */
int memory_file_message(const char *name, const void *bytes, size_t n) must_check;
/* The same of two pieces; the first may have no bytes. */
int memory_file_pieces(const char *name, const void *head, size_t nhead, const void *bytes,
		       size_t n) must_check;
