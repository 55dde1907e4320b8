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

/* The socket is the descriptor itself, in whichever process; here is only how to use it. */
struct umad_device {
	struct cdev_file cdev;
	struct umad_page *page;
	uint64_t token;
	uint32_t minor;
	int access; /* O_RDONLY, O_WRONLY or O_RDWR; the socket itself would do both */
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
 * Asks for a umad or issm file by its name; the reply replaces the request.  Returns the connection,
 * or negative errno. -ENODEV: this process is on no fabric.
 */
int umad_link_open(const char *name, bool wait, enum msg_type type, struct msg *m,
		   int fds[MSG_MAX_FDS]) must_check;
/* What a file answers when a request ended with 'ret' on its way, in errors that the kernel's have too:
 * -EIO where the daemon is silent or makes no sense, -ENOMEM where the socket has no room. */
int umad_request_error(int ret);
void umad_request_fill(struct msg *m, const char *name, bool wait);
/* Asks for the file whose socket has that inode, as umad_link_open; starts no daemon. */
int umad_adopt_open(struct msg *m, int fds[MSG_MAX_FDS]) must_check;
/* A connection for more requests. */
int umad_lease_open(struct msg *m, int fds[MSG_MAX_FDS]) must_check;
/* One request on a connection of its own.  Negative errno, as the program gets it, -EIO if the daemon
 * has gone. */
int umad_ask(struct umad_device *u, struct msg *m, enum msg_type type,
	     int fds[MSG_MAX_FDS]) must_check;
/* The same of what no descriptor comes with, also where the program has no number left for the connection. */
int umad_ask_plain(struct umad_device *u, struct msg *m, enum msg_type type) must_check;

/* ---- crowded.c ---- */

/* Calls it where two more descriptors can be had, though the program has as many as it is allowed: 'keep' is the same there,
 * new ones are gone afterwards.  What it returns, or -EMFILE. */
ssize_t umad_crowded(ssize_t (*call)(void *arg), void *arg, int keep) must_check;
/* Has the program itself room for two more?  fd: one that is open. */
bool umad_has_room(int fd) must_check;

/* ---- ioctl.c, write.c, read.c: the operations ---- */

int umad_ioctl(struct cdev_file *f, unsigned long request, void *arg);
ssize_t umad_write(struct cdev_file *f, int fd, const void *buf, size_t count);
ssize_t umad_read(struct cdev_file *f, int fd, void *buf, size_t count);

/* ---- message_file.c ---- */

/* The end of a file in memory with these bytes, for whoever gets the descriptor to read.  Its descriptor, -EFAULT if the
 * bytes cannot be read, or -ENOMEM. */
int umad_message_file(const void *bytes, size_t n) must_check;

/* ---- copy.c: memory that the program names, which may not be there ---- */

/* From now on bad addresses are found by our handler of faults, which is installed for it. */
void user_guard(void);
/* Are they? */
bool user_is_guarded(void) must_check;
/* 0 or -EFAULT. */
int user_load(void *to, const void *from, size_t n) must_check;
int user_store(void *to, const void *from, size_t n) must_check;
/* Is there memory for a store of n bytes, less than a page?  False also where that costs too much to know. */
bool user_can_store(void *to, size_t n) must_check;
