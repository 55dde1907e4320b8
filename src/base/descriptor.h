/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors: the file behind one, and those of ours that the program does not know of. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

/*
 * The file behind a descriptor, as /proc shows it.  These are bare system calls: neither points where
 * a thread can be cancelled nor calls that the preload library takes for the program's.
 */

/*
 * Opens the file of a descriptor of a process, or of this thread if pid is 0, once more, closed in exec.
 * Returns the new descriptor, or -1 with errno set.
 */
int descriptor_reopen(pid_t pid, int fd, int flags) must_check;
/* Gives the name of the file as readlink(2) does; fd may be AT_FDCWD. */
ssize_t descriptor_name(int fd, char *buf, size_t size) must_check;

/*
 * Descriptors that the program does not know of.  A program may close every descriptor that it does
 * not know, as daemons do, and open files of its own, which then get these numbers.  So
 *
 *   - they have high numbers, out of the way of programs that count on low ones,
 *   - close(2) and its relatives do not find them (preload/fd.c asks hidden_is),
 *   - whoever uses one asks hidden_ours first: a system call that bypasses the C library does close
 *     it, and then the file that has its number stays untouched.
 *
 * Between hidden_ours and the use another thread may still close the descriptor, as it may close
 * any that a library is using.
 */

struct hidden {
	int fd;		 /* -1: none */
	uint64_t id;	 /* of the file behind it */
	int64_t eventfd; /* tells eventfds apart, which all share a file; -1: unknown */
};

#define HIDDEN_NONE ((struct hidden){-1, 0, -1})

/* Identifies the file behind a descriptor, in the same way in all processes of this system; 0:
 * none. */
uint64_t hidden_id(int fd);
/* The same without a descriptor, from the numbers that fstat would return. */
uint64_t hidden_file_id(uint64_t device, uint64_t inode);
/* Takes fd over and makes it CLOEXEC; its number may change.  A negative fd gives none. */
struct hidden hidden_keep(int fd);
/* True if the descriptor still names the file that hidden_keep took. */
bool hidden_ours(const struct hidden *h) must_check;
/* Closes the descriptor if it is still ours, and makes *h none. */
void hidden_close(struct hidden *h);
/* Closes all hidden descriptors in a forked child, which has no use for its parent's. */
void hidden_fork_child(void);

/* ---- for code that closes by number ---- */

#define HIDDEN_MAX_FDS 65536u

extern _Atomic(uint64_t) hidden_ids[HIDDEN_MAX_FDS];

bool hidden_is_slow(int fd);

/* True if the number was hidden at some time.  Touches nothing, so a child of vfork may ask. */
static inline bool hidden_is_marked(int fd)
{
	return fd >= 0 && (unsigned)fd < HIDDEN_MAX_FDS &&
	       unlikely(atomic_load_explicit(&hidden_ids[fd], memory_order_relaxed) != 0);
}

static inline bool hidden_is(int fd)
{
	return hidden_is_marked(fd) && hidden_is_slow(fd);
}

/* The first hidden descriptor from 'first' to 'last', or -1. */
int hidden_next(unsigned first, unsigned last);
