/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device file as the descriptor table sees it.  The table knows nothing of verbs: each kind of
 * file (a uverbs context, an event channel) embeds struct cdev_file and brings its operations.
 *
 * Two counts, because a channel whose last descriptor is gone may still be named by a CQ:
 *   descriptors  entries of the table; when it drops to 0, last_close runs, once
 *   refs         one for all descriptors together, one per user in flight or object naming it;
 *                when it drops to 0, release runs as soon as no reader holds the file
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/hazard.h"

struct cdev_file;

/* Each returns 0, a size, or a negative errno.  A missing operation fails as in the kernel. */
struct cdev_ops {
	int (*ioctl)(struct cdev_file *f, unsigned long request, void *arg);
	/* Called in a forked child, where the device is the parent's. */
	int (*ioctl_inherited)(struct cdev_file *f, unsigned long request, void *arg);
	/* fd is one of the file's descriptors.  The operations of a shared file may wait, and a
	 * thread that waits may be cancelled. */
	ssize_t (*read)(struct cdev_file *f, int fd, void *buf, size_t count);
	ssize_t (*write)(struct cdev_file *f, int fd, const void *buf, size_t count);
	void (*fstat)(struct cdev_file *f, struct stat *st);
	/* The program is about to read fd, one of the file's descriptors, at position. */
	void (*before_read)(struct cdev_file *f, int fd, off_t position);
	/*
	 * The program is about to read fd, one of the file's descriptors: waits until that does not
	 * block, or as long as it likes.  Returns 0, or the error of the read.  It drops the
	 * caller's reference, because a thread that waits may never come back; cancel is what
	 * cancel_restore needs.
	 */
	int (*wait)(struct cdev_file *f, int fd, const int *cancel);
	/* Returns the descriptor to map instead of the file.  May be missing. */
	int (*map)(struct cdev_file *f, size_t len, off_t offset);
	/* The program has mapped [offset, offset + len), shared. */
	void (*mapped)(struct cdev_file *f, uintptr_t addr, size_t len, off_t offset);
	/* No descriptor is left.  May be missing. */
	void (*last_close)(struct cdev_file *f);
	void (*release)(struct cdev_file *f);
	/* A child of a fork goes on using the file, because its device is another process. */
	bool shared;
};

struct cdev_file {
	const struct cdev_ops *ops;
	_Atomic(unsigned) descriptors;
	_Atomic(unsigned) refs;
	/* Of the real file behind its descriptors (hidden_id); 0: not installed yet. */
	uint64_t id;
	/* The process inherited the file over fork, so the device behind it is the parent's. */
	_Atomic(bool) foreign;
};

/* The caller holds the first reference; cdev_install passes it on to the table. */
void cdev_file_init(struct cdev_file *f, const struct cdev_ops *ops);
/* -ENOMEM: no room in the table, or -EBADF; then the reference stays with the caller. */
int cdev_install(int fd, struct cdev_file *f) must_check;
/* fd names no device file any more; called before fd is closed. */
void cdev_table_clear(int fd);
/* The same for a range of numbers. */
void cdev_table_clear_range(unsigned first, unsigned last);
/* From now on newfd names what fd names. */
void cdev_table_dup(int fd, int newfd);
/* The child of a fork calls this: files that are not shared are the parent's. */
void cdev_table_fork_child(void);
/*
 * Does fd still name the file that was installed?  Descriptors are closed and replaced in ways of
 * which we do not hear (fclose, closedir, bare system calls, io_uring), and the number may be another
 * file's by now.  Asks the kernel only if the number is in the table.
 */
bool cdev_table_is_true(int fd) must_check;
/* Returns what fd names, with a reference, or NULL. */
struct cdev_file *cdev_get(int fd);
void cdev_hold(struct cdev_file *f);
void cdev_put(struct cdev_file *f);

/* Takes fd over and gives it the lowest number and the flags of an open.  Returns the new number,
 * or a negative errno. */
int cdev_descriptor(int fd, int flags) must_check;

/* The descriptor table, by number.  Most processes have low numbers only; the parts of the table for
 * higher ones come into being when they are needed, and stay. */
#define CDEV_LOW_FDS 65536u
typedef _Atomic(struct cdev_file *) cdev_entry;
extern cdev_entry cdev_table[CDEV_LOW_FDS];
extern _Atomic(cdev_entry *) cdev_high_tables[(1u << 31) / CDEV_LOW_FDS];

/* NULL: no such number was ever used. */
static inline cdev_entry *cdev_table_at(int fd)
{
	cdev_entry *high;

	if (fd < 0)
		return NULL;
	if ((unsigned)fd < CDEV_LOW_FDS)
		return &cdev_table[fd];
	high = atomic_load_explicit(&cdev_high_tables[(unsigned)fd / CDEV_LOW_FDS],
				    memory_order_acquire);
	return high ? &high[(unsigned)fd % CDEV_LOW_FDS] : NULL;
}

static inline struct cdev_file *cdev_table_load(int fd)
{
	cdev_entry *at = cdev_table_at(fd);

	return at ? atomic_load_explicit(at, memory_order_acquire) : NULL;
}

/* The same for a reader, which holds the file from now on. */
static inline struct cdev_file *cdev_table_take(int fd)
{
	cdev_entry *at = cdev_table_at(fd);

	return at ? hazard_take(at) : NULL;
}

/* As cdev_table_take; NULL also if fd was inherited over fork.  Each doorbell calls this once. */
static inline struct cdev_file *cdev_peek(int fd)
{
	struct cdev_file *f = cdev_table_take(fd);

	return f && !atomic_load_explicit(&f->foreign, memory_order_relaxed) ? f : NULL;
}

/* ---- live attributes of the device tree: see cdev_open_attr ---- */

/* A descriptor, of which a read may fail, or negative errno: -ENOENT if the plain file serves.  look: see cdev_open_attr; NULL:
 * it is not tracked. */
int attr_file_open(const char *path, int flags, const struct stat *look) must_check;
/*
 * Opens it for writing.  The daemon takes the records of the stream, so any process that gets the
 * descriptor can write too.
 */
int attr_file_create(const char *path, int flags, const struct stat *look) must_check;
