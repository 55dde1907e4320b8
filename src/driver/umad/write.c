// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sending a MAD.  With the page that the daemon keeps for us, we refuse here what the kernel
 * refuses, in the kernel's order; then the bytes go as they are, and the thread waits for nobody.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/memory_file.h"
#include "driver/umad/device.h"
#include "fabric/umad.h"
#include "fabric/smi.h"
#include "prm/mad.h"

/* The parts of a message that we look at before we send it. */
struct umad_sending {
	struct ib_user_mad_hdr header;
	uint8_t mad[MAD_BYTES]; /* only as many bytes as 'looked' says */
	uint32_t header_bytes;
	uint32_t agent; /* word of the page */
};

/* Makes checks 1 and 2; then s has the header and the beginning of the MAD. */
static int sending_load(struct umad_sending *s, const uint8_t *buf, size_t count)
{
	if (count < s->header_bytes + MAD_RMPP_BYTES)
		return -EINVAL;
	s->header = (struct ib_user_mad_hdr){0};
	if (user_load(&s->header, buf, s->header_bytes))
		return -EFAULT;
	return user_load(s->mad, buf + s->header_bytes, MAD_RMPP_BYTES);
}

/* Makes checks 3 to 7, and 11. */
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

/* Makes check 10: asks the daemon only if there may be another such send. */
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

/* Makes check 12.  Paths of directed routes lie at the end of the MAD. */
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
