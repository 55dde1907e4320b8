// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receiving a MAD.  If every message that can be there fits the buffer, one system call takes it.
 * Otherwise, or if there is none, the reader looks at a message before it takes it, because one
 * that does not fit stays; during the look a thread waits, is interrupted or cancelled.  A message
 * that the socket has no room for has a marker in the socket, and the reader fetches it from the
 * daemon.
 *
 * Several threads and processes may read, without locks.  A reader that took another message than
 * it had seen gives it back and begins again.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/log.h"
#include "driver/umad/device.h"
#include "prm/mad.h"

/*
 * A reader rests after this many failures in a row, because a program that asks a dead device again
 * and again must not take a processor for it.
 */
#define PATIENT_FAILURES 2u
#define FAILURE_REST_NS	 20000000
/* How often we leave a message to a reader that is about to take it off the stream. */
#define OTHERS_TURNS 100u

#define AGAIN 1 /* another reader was quicker */

struct umad_reading {
	struct umad_device *device;
	int fd;
	uint8_t *buf; /* the program's */
	size_t count;
	uint32_t header_bytes;
	uint32_t turns; /* how often other readers took theirs */
	/* Takes a message that does not fit the program's buffer. */
	uint8_t small[UMAD_MESSAGE_BYTES];
};

static int reading_gone(struct umad_device *u)
{
	const struct timespec rest = {.tv_nsec = FAILURE_REST_NS};

	atomic_store_explicit(&u->page->gone, 1, memory_order_release);
	if (atomic_fetch_add_explicit(&u->failures, 1, memory_order_relaxed) >= PATIENT_FAILURES)
		nanosleep(&rest, NULL);
	return -EIO;
}

static int stream_error(struct umad_device *u)
{
	return errno == ECONNRESET ? reading_gone(u) : -errno;
}

/* Tells whether whole messages of the stream need the small buffer. */
static bool reading_is_small(const struct umad_reading *r)
{
	return r->count < r->header_bytes + MAD_BYTES;
}

/* Returns the length of the first message, whose beginning is in 'to'.  A cancellation point. */
static ssize_t stream_look(const struct umad_reading *r, void *to, size_t room, int flags)
{
	struct iovec iov = {to, room};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = recvmsg(r->fd, &mh, MSG_PEEK | MSG_TRUNC | flags);

	if (n < 0)
		return stream_error(r->device);
	return n ? n : reading_gone(r->device);
}

/* Takes the first message off, whichever it is.  Returns its length, or AGAIN if there is none. */
static ssize_t stream_take(const struct umad_reading *r, void *to, size_t room)
{
	ssize_t n;

	/* The descriptor may name another file by now. */
	if (cdev_table_load(r->fd) != &r->device->cdev)
		return -EBADF;
	n = syscall(SYS_recvfrom, r->fd, to, room, MSG_DONTWAIT | MSG_TRUNC, NULL, NULL);
	if (n < 0)
		return errno == EAGAIN ? AGAIN : stream_error(r->device);
	return n ? n : reading_gone(r->device);
}

/* Puts a message of 'n' bytes, which are in 'bytes' or in a file, at the end of the stream, because
 * nothing else can be done with it. */
static void stream_return(const struct umad_reading *r, const void *bytes, size_t n, int file)
{
	struct umad_marker marker = {UMAD_MAGIC, UMAD_RETURNED, n};
	struct iovec iov[] = {{&marker, sizeof(marker)}, {(void *)(uintptr_t)bytes, bytes ? n : 0}};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = array_size(iov)};

	if (file >= 0) {
		struct cmsghdr *c = &control.align;

		mh.msg_control = control.buf;
		mh.msg_controllen = sizeof(control.buf);
		*c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(c), &file, sizeof(int));
	}
	while (syscall(SYS_sendmsg, r->fd, &mh, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static void stream_give_back(const struct umad_reading *r, const void *bytes, size_t n)
{
	stream_return(r, bytes, n, -1);
}

static bool marker_is(const void *bytes, ssize_t n, struct umad_marker *out)
{
	memcpy(out, bytes, sizeof(*out));
	return n == sizeof(*out) && out->magic == UMAD_MAGIC;
}

/* ---- a message of the stream ---- */

static ssize_t reading_take_plain(struct umad_reading *r, ssize_t n)
{
	struct umad_marker marker;
	ssize_t taken;

	if ((size_t)n > r->count)
		return -EINVAL;
	if (!reading_is_small(r)) {
		taken = stream_take(r, r->buf, r->count);
		if (taken <= AGAIN || !marker_is(r->buf, taken, &marker))
			return taken;
		stream_give_back(r, r->buf, sizeof(marker));
		return AGAIN;
	}
	/* If the kernel took the message into a bad address, it would be lost. */
	if (user_store(r->buf, r->small, (size_t)n))
		return -EFAULT;
	taken = stream_take(r, r->small, sizeof(r->small));
	if (taken <= AGAIN)
		return taken;
	if (taken == n && !marker_is(r->small, taken, &marker) &&
	    !user_store(r->buf, r->small, (size_t)n))
		return n;
	stream_give_back(r, r->small, (size_t)taken);
	return AGAIN;
}

/* ---- a message that is fetched ---- */

/* Removes the marker of a message that was fetched.  Another reader may have taken it off. */
static int marker_remove(struct umad_reading *r, uint32_t id)
{
	uint8_t bytes[UMAD_MESSAGE_BYTES];
	struct umad_marker marker;
	ssize_t n = stream_look(r, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 || !marker_is(bytes, n, &marker) || marker.id != id)
		return 0;
	n = stream_take(r, bytes, sizeof(bytes));
	if (n > AGAIN && !(marker_is(bytes, n, &marker) && marker.id == id))
		stream_give_back(r, bytes, (size_t)n);
	return 0;
}

/* Copies the first n bytes. */
static ssize_t file_copy(const struct umad_reading *r, int file, size_t n)
{
	size_t at = 0;

	while (at < n) {
		ssize_t got = pread(file, r->buf + at, n - at, (off_t)at);

		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		at += (size_t)got;
	}
	return 0;
}

/*
 * Tells whether the program may have two more descriptors, a connection and the message.  A message
 * that the daemon hands out and that we cannot take would be lost.
 */
static bool reading_has_room(const struct umad_reading *r)
{
	int one = (int)syscall(SYS_fcntl, r->fd, F_DUPFD_CLOEXEC, 0);
	int two = one < 0 ? -1 : (int)syscall(SYS_fcntl, r->fd, F_DUPFD_CLOEXEC, 0);

	if (one >= 0)
		syscall(SYS_close, one);
	if (two >= 0)
		syscall(SYS_close, two);
	return two >= 0;
}

static ssize_t reading_copy(struct umad_reading *r, const struct msg_umad_fetch_reply *reply,
			    int file, uint32_t id)
{
	ssize_t ret;

	if (reply->kept) {
		ret = file_copy(r, file, r->header_bytes + MAD_BYTES);
		return ret ? ret : -ENOSPC;
	}
	marker_remove(r, id);
	if (reply->length > r->count)
		return -EIO;
	ret = file_copy(r, file, reply->length);
	if (ret)
		stream_return(r, NULL, reply->length, file);
	return ret ? ret : (ssize_t)reply->length;
}

static ssize_t reading_fetch(struct umad_reading *r, uint32_t id)
{
	struct msg m = {.umad_fetch = {.token = r->device->token, .id = id, .room = r->count}};
	int fds[MSG_MAX_FDS];
	ssize_t ret;
	/* The daemon has handed the message out, so nobody else has it. */
	no_cancellation();

	if (reading_is_small(r))
		return -EINVAL;
	if (!reading_has_room(r))
		return -EMFILE;
	ret = umad_ask(r->device, &m, MSG_UMAD_FETCH, fds);
	if (ret == -ENOENT) {
		if (r->turns++ < OTHERS_TURNS)
			sched_yield();
		else
			marker_remove(r, id);
		return AGAIN;
	}
	if (ret)
		return ret == -EIO ? reading_gone(r->device) : ret;
	ret = reading_copy(r, &m.umad_fetch_reply, fds[0], id);
	close(fds[0]);
	return ret;
}

/* ---- a message that fits, whichever it is ---- */

/* A marker came in the moment after the stream was empty.  If the message stays, so does its
 * marker: it is back when the daemon has answered. */
static ssize_t marker_taken(struct umad_reading *r, struct umad_marker *marker)
{
	ssize_t ret = reading_fetch(r, marker->id);
	struct msg m = {.umad_in_flight = {.token = r->device->token}};

	if (ret >= 0)
		return ret;
	stream_give_back(r, marker, sizeof(*marker));
	if (umad_ask(r->device, &m, MSG_UMAD_IN_FLIGHT, NULL))
		log_debug("umad: a long message may be late");
	return ret;
}

/* Tells that we need not look at anything first. */
static bool reading_fits(const struct umad_reading *r)
{
	return !reading_is_small(r) &&
	       !atomic_load_explicit(&r->device->page->longs, memory_order_acquire) &&
	       user_can_store(r->buf, r->header_bytes + MAD_BYTES);
}

/* Takes a message without waiting: AGAIN if there is none. */
static ssize_t reading_direct(struct umad_reading *r)
{
	struct umad_marker marker;
	ssize_t n;

	pthread_testcancel();
	n = stream_take(r, r->small, sizeof(r->small));
	if (n <= AGAIN)
		return n;
	if (marker_is(r->small, n, &marker))
		return marker_taken(r, &marker);
	if ((size_t)n <= r->count && !user_store(r->buf, r->small, (size_t)n))
		return n;
	stream_give_back(r, r->small, (size_t)n);
	return -EFAULT;
}

static ssize_t reading_look(struct umad_reading *r)
{
	bool small = reading_is_small(r);
	void *to = small ? r->small : r->buf;
	struct umad_marker marker;
	ssize_t n = stream_look(r, to, small ? sizeof(r->small) : r->count, 0);

	if (n < 0)
		return n;
	if (marker_is(to, n, &marker))
		return reading_fetch(r, marker.id);
	return reading_take_plain(r, n);
}

static ssize_t reading_once(struct umad_reading *r)
{
	ssize_t n = reading_fits(r) ? reading_direct(r) : AGAIN;

	return n == AGAIN ? reading_look(r) : n;
}

ssize_t umad_read(struct cdev_file *f, int fd, void *buf, size_t count)
{
	struct umad_device *u = umad_device_of(f);
	struct umad_reading r = {.device = u, .fd = fd, .buf = buf, .count = count};
	ssize_t ret;

	if (u->access == O_WRONLY)
		return -EBADF;
	r.header_bytes = umad_header_bytes(u);
	if (count < r.header_bytes)
		return -EINVAL;
	if (umad_is_gone(u))
		return reading_gone(u);
	do {
		ret = reading_once(&r);
	} while (ret == AGAIN);
	if (ret >= 0)
		atomic_store_explicit(&u->failures, 0, memory_order_relaxed);
	return ret;
}
