/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's doors for the preload library: what a character device's file operations are to the
 * kernel.  The preload decides by path and descriptor number that a call is for us, and calls
 * these. All return -1 with errno set on failure, as the system call would.
 */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/compiler.h"

/* Starts the fabric's daemon unless it runs, so that the device tree exists. */
int cdev_ensure_tree(void);
/* Tells whether this is one of the two signals whose handlers the driver keeps. */
bool cdev_keeps_signal(int signum);
/* As sigaction(2), for such a signal. */
int cdev_sigaction(int signum, const struct sigaction *act, struct sigaction *oldact);
/* Called after sigaltstack(2) has given a thread an alternate stack of so many bytes. */
void cdev_signal_stack(size_t bytes);

/* Opens /dev/infiniband/<name> ("uverbs0"): returns a real descriptor (memfd or socket). */
int cdev_open(const char *name, int flags);
/* Does fd belong to a device?  Safe for any int; a system call if it does. */
bool cdev_is_ours(int fd);
/* Did fd belong to a device the last time that we heard of it?  O(1), safe for any int. */
bool cdev_is_listed(int fd);
int cdev_ioctl(int fd, unsigned long request, void *arg);
/* Tells whether fd is a device's all the same, because another process has opened it. */
bool cdev_adopt(int fd, unsigned long request);
ssize_t cdev_write(int fd, const void *buf, size_t count);
/* What a write to an fd that is none of ours fails with, when the kernel has said EBADF: it may be a
 * device's that another process has opened. */
ssize_t cdev_write_failed(int fd);
static inline ssize_t cdev_written(int fd, ssize_t ret)
{
	return unlikely(ret < 0 && errno == EBADF) ? cdev_write_failed(fd) : ret;
}
/* Makes *st look like the character device's. */
void cdev_fstat(int fd, struct stat *st);
/* The preload calls this before it asks the kernel whose fd is: if the program waits there for a
 * device's events, does the next one come within a few microseconds?  Then the real read returns it. */
bool cdev_event_comes(int fd);
/* The preload calls this before a real read at the file's position.  True: *done is what the read
 * returns, and the preload makes no real one. */
bool cdev_read(int fd, void *buf, size_t count, ssize_t *done);
/* Tells whether cdev_read and cdev_write serve the reads and writes of the file. */
bool cdev_moves_bytes(int fd);
/* The preload calls this before a real read of the bytes at position. */
void cdev_before_read(int fd, off_t position);
#define CDEV_WHERE_IT_STANDS ((off_t)-1)
/* Returns the descriptor that a mapping of fd maps: fd itself, or another. */
int cdev_map(int fd, size_t len, off_t offset);
/* Called after a shared mapping of fd was made, before addresses go, and after they moved. */
void cdev_mapped(int fd, void *addr, size_t len, off_t offset);
void cdev_unmapping(void *addr, size_t len);
void cdev_moved(void *from, size_t len, void *to);
/* Called before the real close; drops the descriptor's reference to its device file. */
void cdev_close(int fd);
/* The same for a range of numbers, after the real call. */
void cdev_close_range(unsigned first, unsigned last);
/* Called after pthread_cancel: the thread may wait here instead of in the kernel's read. */
void cdev_cancelled(void);
/*
 * A thread calls these when it is about to wait for descriptors.  The first two tell whether the
 * process has completion channels, and whether fd is one; cdev_completion_events says how many
 * events there have been.  Between cdev_wait_begin and cdev_wait_end the thread drives the device
 * (driver/runtime/drive.h): it also waits for the descriptor that cdev_wait_begin returned, unless
 * that is -1, and 'woken' says whether that one can be read; 'events' is what there had been before
 * the thread asked the kernel.  The caller holds signals back.
 */
#define CDEV_WAIT_ASK (-2) /* instead of a descriptor: there may be an event, see DRIVE_ASK */
bool cdev_any_channel(void);
bool cdev_is_channel(int fd);
uint32_t cdev_completion_events(void);
int cdev_wait_begin(uint32_t events);
void cdev_wait_end(bool woken);
/* As mlockall(2), for a process with a device. */
int cdev_lock_all(int flags);
/*
 * The preload calls these around ioctl(UFFDIO_REGISTER, arg), by which the program begins to serve
 * the faults of memory.  In between, the driver lays none of that memory open to peers; afterwards
 * it knows that the program serves it.
 */
void cdev_serving_begin(const void *arg);
void cdev_serving_end(void);
/* newfd is a duplicate of fd (dup, dup2, F_DUPFD). */
void cdev_dup(int fd, int newfd);

/*
 * Opens a live attribute of the device tree, by its path below the host's directory: a descriptor
 * that reads the present value, or -1 with ENOENT when the plain file serves.  The table keeps a
 * tracked descriptor, so that reading it from the start again gives the value of that time, and fstat
 * describes it as the file of the tree.
 */
int cdev_open_attr(const char *path, int flags, bool tracked, const struct stat *look);
/* The same for writing, of an attribute that only the daemon writes, when somebody tells it to. */
int cdev_open_attr_for_writing(const char *path, int flags, bool tracked, const struct stat *look);

/*
 * The preload calls these around fork(2), also in a process that has never opened a device, and
 * outside of the handlers below.
 */
void cdev_serving_fork_lock(void);
void cdev_serving_fork_unlock(void);
/* pthread_atfork handlers, installed by the preload library. */
void cdev_fork_prepare(void);
void cdev_fork_parent(void);
void cdev_fork_child(void);
