/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside driver/umad: an open umad file, and what its operations share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "driver/file/cdev_file.h"
#include "fabric/protocol.h"

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

/* ---- ask.c ---- */

/*
 * Asks the daemon for a umad or issm file by its name; the reply replaces the request.  Returns the
 * connection, or a negative errno.  -ENODEV: this process is on no fabric.
 */
int umad_link_open(const char *name, bool wait, enum msg_type type, struct msg *m,
		   int fds[MSG_MAX_FDS]) must_check;
/* The error of a file whose request ended with 'ret' on its way, among those that the kernel's
 * files have: -EIO if the daemon is silent or makes no sense, -ENOMEM if the socket has no room. */
int umad_request_error(int ret);
void umad_request_fill(struct msg *m, const char *name, bool wait);
/* Asks for the file whose socket has that inode, as umad_link_open does, but starts no daemon. */
int umad_adopt_open(struct msg *m, int fds[MSG_MAX_FDS]) must_check;
/* Opens a connection for more requests. */
int umad_lease_open(struct msg *m, int fds[MSG_MAX_FDS]) must_check;
/*
 * Makes one request on a connection of its own; 'fds' gets the descriptors of the reply, and may be
 * NULL if it has none.  Returns a negative errno as the program gets it: -EIO if the daemon has
 * gone, -EMFILE if the program has as many descriptors as it is allowed.
 */
int umad_ask(struct umad_device *u, struct msg *m, enum msg_type type,
	     int fds[MSG_MAX_FDS]) must_check;

/* ---- ioctl.c, write.c, read.c: the operations ---- */

int umad_ioctl(struct cdev_file *f, unsigned long request, void *arg);
ssize_t umad_write(struct cdev_file *f, int fd, const void *buf, size_t count);
ssize_t umad_read(struct cdev_file *f, int fd, void *buf, size_t count);

/* ---- copy.c: memory that the program names, which may not be there ---- */

/* From now on our handler of faults, which this installs, finds bad addresses. */
void user_guard(void);
/* Each copies n bytes and returns 0 or -EFAULT. */
int user_load(void *to, const void *from, size_t n) must_check;
int user_store(void *to, const void *from, size_t n) must_check;
/*
 * Tells whether n bytes, less than a page, can be stored there.  False also where that costs too
 * much to find out.
 */
bool user_can_store(void *to, size_t n) must_check;
