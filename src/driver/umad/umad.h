/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /dev/infiniband/umad<N> and issm<N> in the program: arguments, copies, blocking.  The files need
 * no slot and no engine, and go on working in a forked child.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "driver/file/cdev_file.h"
#include "driver/runtime/user.h"
#include "fabric/protocol.h"

/* ---- the files ---- */

/* As uverbs_file_open: a descriptor or negative errno. */
int umad_device_open(const char *name, int flags) must_check;
/* Tells whether this is a request of umad files and the descriptor is one of theirs that came by
 * execve or from another process; then the table knows it from now on. */
bool umad_device_adopt(int fd, unsigned long request);
/*
 * The same for issm; it waits until nobody else holds the port's token, and the wait can be
 * interrupted or cancelled.
 */
int issm_device_open(const char *name, int flags) must_check;

/* Major and first minor numbers, as the kernel's. */
#define UMAD_MAJOR 231u
#define ISSM_MINOR 64u

/* The descriptor is the socket itself, in every process; this record says how to use it. */
struct umad_device {
	struct cdev_file cdev;
	struct umad_page *page;
	uint64_t token;
	uint32_t minor;
	int access; /* O_RDONLY, O_WRONLY or O_RDWR; the socket itself allows both */
	_Atomic(uint32_t) failures; /* reads in a row that found the daemon gone */
};

static inline struct umad_device *umad_device_of(struct cdev_file *f)
{
	return container_of(f, struct umad_device, cdev);
}

static inline uint32_t umad_header_bytes(const struct umad_device *u)
{
	return atomic_load_explicit(&u->page->header_bytes, memory_order_acquire);
}

static inline bool umad_is_gone(const struct umad_device *u)
{
	return atomic_load_explicit(&u->page->gone, memory_order_acquire) != 0;
}

/* ---- requests to the daemon ---- */

/*
 * Makes one request on a connection of its own; 'fds' gets the descriptors of the reply, and may be
 * NULL if it has none.  Returns a negative errno as the program gets it: -EIO if the daemon has
 * gone, -EMFILE if the program has as many descriptors as it is allowed.
 */
int umad_ask(struct umad_device *u, struct msg *m, enum msg_type type,
	     int fds[MSG_MAX_FDS]) must_check;

/* ---- messages ---- */

ssize_t umad_write(struct cdev_file *f, int fd, const void *buf, size_t count);
ssize_t umad_read(struct cdev_file *f, int fd, void *buf, size_t count);
