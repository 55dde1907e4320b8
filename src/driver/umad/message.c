// SPDX-License-Identifier: BSD-2-Clause
/* Receiving and sending of MADs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "driver/runtime/fault.h"
#include "driver/umad/umad.h"
#include "fabric/umad.h"
#include "fabric/smi.h"
#include "prm/mad.h"
#include "usermem/usermem.h"

/* ---- memory of the program ---- */

/*
 * Tells whether n bytes, less than a page, can be stored there.  False also where that costs too
 * much to find out.
 */
static must_check bool user_can_store(void *to, size_t n)
{
	/* n is less than a page, so no page lies between the two. */
	return user_is_guarded() && usermem_touch(to, true) &&
	       usermem_touch((uint8_t *)to + n - 1, true);
}

/* ---- receiving ---- */

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

/* ---- sending ---- */

/*
 * Sending a MAD.  With the page that the daemon keeps for us, we refuse here what the kernel
 * refuses, in the kernel's order (docs/design/mads.md has the list); then the bytes go as they are.
 * The thread waits for room in the socket only.
 */

/* The parts of a message that we look at before we send it. */
struct umad_sending {
	struct ib_user_mad_hdr header;
	uint8_t mad[MAD_BYTES]; /* only as many bytes as 'looked' says */
	uint32_t header_bytes;
	uint32_t agent; /* word of the page */
};

/* Checks the length and the memory; then s has the header and the beginning of the MAD. */
static int sending_load(struct umad_sending *s, const uint8_t *buf, size_t count)
{
	if (count < s->header_bytes + MAD_RMPP_BYTES)
		return -EINVAL;
	s->header = (struct ib_user_mad_hdr){0};
	if (user_load(&s->header, buf, s->header_bytes))
		return -EFAULT;
	return user_load(s->mad, buf + s->header_bytes, MAD_RMPP_BYTES);
}

/* Is the agent there, may it send this, and is there room for one more send? */
static int sending_check(struct umad_sending *s, const struct umad_device *u, size_t count)
{
	const struct umad_page *page = u->page;
	const struct ib_user_mad_hdr *h = &s->header;
	size_t bytes = count - s->header_bytes;
	struct mad_sender sender = {.gids = page->gids};
	int ret;

	if (h->id >= UMAD_AGENTS)
		return -EINVAL;
	s->agent = atomic_load_explicit(&page->agents[h->id], memory_order_acquire);
	if (!s->agent || umad_is_gone(u))
		return -EIO;
	sender.rmpp = s->agent & UMAD_AGENT_RMPP;
	sender.user_rmpp = s->agent & UMAD_AGENT_USER_RMPP;
	ret = mad_send_check(&sender, h->sl, h->grh_present ? h->gid_index : -1, s->mad, bytes);
	if (ret)
		return ret;
	if (bytes > UMAD_MOST_MESSAGE ||
	    atomic_load_explicit(&page->sends, memory_order_relaxed) >= UMAD_MOST_SENDS)
		return -ENOMEM;
	return 0;
}

static struct msg_umad_in_flight in_flight_of(const struct umad_sending *s,
					      const struct umad_device *u)
{
	struct msg_umad_in_flight r = {
		.token = u->token,
		.agent = s->header.id,
		.lid = (uint16_t)(s->header.lid >> 8 | s->header.lid << 8),
		.grh = s->header.grh_present,
	};

	memcpy(r.header, s->mad, sizeof(r.header));
	memcpy(r.gid, s->header.gid, sizeof(r.gid));
	return r;
}

static _Atomic(uint16_t) *sending_place(const struct umad_sending *s, const struct umad_device *u)
{
	return &u->page->in_flight[umad_in_flight_at(mad_get32(s->mad, MAD_AT_TID + 4),
						     s->mad[MAD_AT_CLASS])];
}

/* Is the same send under way?  Asks the daemon only if there may be one. */
static int sending_check_duplicate(const struct umad_sending *s, struct umad_device *u)
{
	struct msg m = {0};

	if (s->agent & UMAD_AGENT_USER_RMPP && mad_rmpp_is_active(s->mad))
		return 0;
	if (!atomic_load_explicit(sending_place(s, u), memory_order_acquire))
		return 0;
	m.umad_in_flight = in_flight_of(s, u);
	/* If we cannot ask the daemon, it will drop a duplicate without telling. */
	return umad_ask(u, &m, MSG_UMAD_IN_FLIGHT, NULL) == -EINVAL ? -EINVAL : 0;
}

/* Does a directed route begin at this port?  Its path lies at the end of the MAD, which has not been
 * loaded yet. */
static int sending_check_route(struct umad_sending *s, const struct umad_page *page,
			       const uint8_t *buf, size_t count)
{
	size_t bytes = min_u64(count - s->header_bytes, MAD_BYTES);
	uint8_t port;

	if (!mad_is_directed(s->mad))
		return 0;
	memset(s->mad, 0, sizeof(s->mad));
	if (user_load(s->mad, buf + s->header_bytes, bytes))
		return -EFAULT;
	return smi_send(s->mad, page->is_switch, (uint8_t)page->port, &port) == SMI_DISCARD
		       ? -EINVAL
		       : 0;
}

static int sending_prepare(struct umad_sending *s, struct umad_device *u, const uint8_t *buf,
			   size_t count)
{
	int ret = sending_load(s, buf, count);

	if (!ret)
		ret = sending_check(s, u, count);
	if (!ret)
		ret = sending_check_duplicate(s, u);
	return ret ? ret : sending_check_route(s, u->page, buf, count);
}

/* ---- the socket ---- */

static int stream_send_attached(int fd, void *bytes, size_t n, int attached)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {bytes, n};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	mh.msg_control = control.buf;
	mh.msg_controllen = sizeof(control.buf);
	c = CMSG_FIRSTHDR(&mh);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &attached, sizeof(int));
	return syscall(SYS_sendmsg, fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/*
 * Makes one attempt, without a cancellation point: a cancelled thread would leave the page wrong.
 */
static int stream_send_once(int fd, void *bytes, size_t n, int attached)
{
	if (attached >= 0)
		return stream_send_attached(fd, bytes, n, attached);
	return syscall(SYS_sendto, fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) < 0 ? -errno
											   : 0;
}

static void page_uncount(struct umad_device *u, const struct umad_sending *s)
{
	atomic_fetch_sub_explicit(sending_place(s, u), 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&u->page->sends, 1, memory_order_relaxed);
}

/* Several threads may have been allowed the last place.  The daemon drops a send that it has no
 * place for, and nobody would be told. */
static int page_count(struct umad_device *u, const struct umad_sending *s)
{
	atomic_fetch_add_explicit(sending_place(s, u), 1, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&u->page->sends, 1, memory_order_relaxed) < UMAD_MOST_SENDS)
		return 0;
	page_uncount(u, s);
	return -ENOMEM;
}

static int stream_send(struct umad_device *u, const struct umad_sending *s, int fd, void *bytes,
		       size_t n, int attached)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int ret;

	for (;;) {
		ret = page_count(u, s);
		if (ret)
			break;
		ret = stream_send_once(fd, bytes, n, attached);
		if (ret)
			page_uncount(u, s);
		if (ret != -EAGAIN)
			break;
		/* The daemon lags, so the thread waits.  It may be cancelled here. */
		(void)poll(&p, 1, -1);
	}
	if (ret != -EPIPE && ret != -ECONNRESET)
		return ret == -ENOBUFS ? -ENOMEM : ret;
	atomic_store_explicit(&u->page->gone, 1, memory_order_release);
	return -EIO;
}

static void message_file_close(void *fd)
{
	close(*(int *)fd);
}

/* The message is in the file, which we have to close if the thread is cancelled here. */
static int file_send(struct umad_device *u, const struct umad_sending *s, int fd, int *file,
		     uint64_t length, const int *cancel)
{
	struct umad_marker marker = {.magic = UMAD_MAGIC, .length = length};
	int ret;

	pthread_cleanup_push(message_file_close, file);
	cancel_restore(cancel);
	ret = stream_send(u, s, fd, &marker, sizeof(marker), *file);
	cancel_hold();
	pthread_cleanup_pop(1);
	return ret;
}

/* Sends a message that the socket has no room for as a file. */
static int stream_send_file(struct umad_device *u, const struct umad_sending *s, int fd,
			    const uint8_t *buf, size_t count)
{
	no_cancellation();
	int file = memory_file_message("softhca-umad", buf, count);

	return file < 0 ? file : file_send(u, s, fd, &file, count, &cancel_state_);
}

ssize_t umad_write(struct cdev_file *f, int fd, const void *buf, size_t count)
{
	struct umad_device *u = umad_device_of(f);
	struct umad_sending s = {.header_bytes = umad_header_bytes(u)};
	int ret = u->access == O_RDONLY ? -EBADF : sending_prepare(&s, u, buf, count);

	if (ret)
		return ret;
	if (count <= UMAD_INLINE_BYTES)
		ret = stream_send(u, &s, fd, (void *)(uintptr_t)buf, count, -1);
	else
		ret = stream_send_file(u, &s, fd, buf, count);
	return ret ? ret : (ssize_t)count;
}
