// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the program has written, from the socket to its agent (file_write.c: what it reads).  The
 * preload library has refused what the kernel refuses.  What still fails here, because a program wrote
 * to the socket by itself or two of its threads met, is dropped; a malformed message ends the file.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "fabric/daemon/mad/rmpp.h"
#include "fabric/daemon/umad/file.h"

#define BATCH 64u /* limit, so that one program does not keep the others waiting */
/* A socket of STREAM_ROOM bytes, which the kernel doubles, has fewer messages. */
#define MOST_THERE 4096u
#define MAX_FILE   (RMPP_MOST_BYTES + UMAD_HEADER_NEW)

static_assert(UMAD_MOST_MESSAGE + UMAD_HEADER_NEW <= UMAD_MOST_OF_A_FILE &&
		      UMAD_MOST_MESSAGE + MAD_BYTES <= RMPP_MOST_BYTES,
	      "what a program may write arrives, also with its last segment filled up");

/* Messages that one system call takes off the socket. */
#define INBOX 16u

struct incoming {
	_Alignas(8) uint8_t bytes[UMAD_INLINE_BYTES + UMAD_HEADER_NEW];
	struct iovec iov;
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
};

/* One set is enough, because the daemon has one thread. */
static struct incoming incoming[INBOX];
static struct mmsghdr inbox[INBOX];

static struct mad_address address_of(const struct umad_file *f, const struct ib_user_mad_hdr *h)
{
	struct mad_address to = {
		.qpn = be32toh(h->qpn),
		.lid = be16toh(h->lid),
		.pkey_index = f->header_bytes == UMAD_HEADER_NEW ? h->pkey_index : 0,
		.sl = h->sl,
		.path_bits = h->path_bits,
		.grh = h->grh_present,
	};

	if (!to.grh)
		return to;
	to.gid_index = h->gid_index;
	to.hop_limit = h->hop_limit;
	to.traffic_class = h->traffic_class;
	to.flow_label = be32toh(h->flow_label);
	memcpy(to.gid.raw, h->gid, sizeof(to.gid.raw));
	return to;
}

/* There was no memory for the message.  Programs count on an end of requests with a time limit. */
static void message_lost(struct umad_file *f, const struct mad_send_attr *send, uint32_t agent)
{
	uint8_t header[MAD_HEADER_BYTES];

	memcpy(header, send->mad, sizeof(header));
	if (!mad_is_response(header))
		mad_put32(header, MAD_AT_TID, f->agents[agent]->mad.tid);
	umad_file_report(f, agent, send->note, header);
}

static int message_send(struct umad_file *f, const struct ib_user_mad_hdr *h, const uint8_t *mad,
			uint32_t length)
{
	struct mad_send_attr send = {
		.to = address_of(f, h),
		.mad = mad,
		.length = length,
		.timeout_ms = h->timeout_ms,
		.retries = h->retries,
	};
	int ret;

	static_assert(sizeof(*h) == sizeof(send.note), "the program's header comes back whole");
	if (h->id >= UMAD_AGENTS || !f->agents[h->id])
		return -EIO;
	/* Reports that nobody reads count, because they would have no bound otherwise. */
	if (f->sends + f->reports >= UMAD_MOST_SENDS)
		return -ENOBUFS;
	memcpy(send.note, h, sizeof(*h));
	/* Counted before, because the send may be over at once. */
	f->sends++;
	ret = mad_agent_send(&f->agents[h->id]->mad, &send);
	if (!ret)
		return 0;
	f->sends--;
	if (ret == -ENOMEM && h->timeout_ms)
		message_lost(f, &send, h->id);
	return ret;
}

/* Returns false if no program of ours writes such a message. */
static bool message_take(struct umad_file *f, const uint8_t *bytes, uint32_t n)
{
	struct ib_user_mad_hdr h = {0};
	const uint8_t *mad = bytes + f->header_bytes;

	if (n < f->header_bytes + MAD_RMPP_BYTES)
		return false;
	memcpy(&h, bytes, f->header_bytes);
	if (message_send(f, &h, mad, n - f->header_bytes))
		umad_page_uncount(f->page, mad_get32(mad, MAD_AT_TID + 4), mad[MAD_AT_CLASS]);
	return true;
}

/*
 * Copies a message from the file that it came in, because the program can change the file.  It
 * takes only a file in memory, because any other could make us wait for its contents.
 */
static uint8_t *file_load(int file, uint64_t length)
{
	uint64_t at = 0;
	uint8_t *bytes;

	if (file < 0 || !length || length > MAX_FILE || fcntl(file, F_GET_SEALS) < 0)
		return NULL;
	bytes = malloc(length);
	while (bytes && at < length) {
		ssize_t n = pread(file, bytes + at, length - at, (off_t)at);

		if (n <= 0) {
			free(bytes);
			return NULL;
		}
		at += (uint64_t)n;
	}
	return bytes;
}

static bool file_take(struct umad_file *f, uint64_t length, int file)
{
	uint8_t *bytes = file_load(file, length);
	bool ok = bytes && message_take(f, bytes, (uint32_t)length);

	free(bytes);
	return ok;
}

/* Takes back what a reader could not keep, which is here or in the file. */
static bool returned_take(struct umad_file *f, uint64_t length, const uint8_t *more, size_t n,
			  int file)
{
	uint8_t *bytes;

	if (file < 0) {
		umad_file_post(f, more, (uint32_t)n);
		return n && length == n;
	}
	bytes = file_load(file, length);
	if (!bytes)
		return false;
	umad_file_post(f, bytes, (uint32_t)length);
	free(bytes);
	return true;
}

static bool marker_take(struct umad_file *f, const struct umad_marker *m, const uint8_t *more,
			size_t n, int file)
{
	if (m->id == UMAD_RETURNED)
		return returned_take(f, m->length, more, n, file);
	return !m->id && file_take(f, m->length, file);
}

static bool bytes_take(struct umad_file *f, const uint8_t *bytes, size_t n, int file)
{
	struct umad_marker m;

	memcpy(&m, bytes, sizeof(m));
	if (n >= sizeof(m) && m.magic == UMAD_MAGIC)
		return marker_take(f, &m, bytes + sizeof(m), n - sizeof(m), file);
	return message_take(f, bytes, (uint32_t)n);
}

/* Returns the descriptor that came along, or -1; closes others. */
static int attached_take(struct msghdr *mh)
{
	int first = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

/* Prepares a place of the inbox for the kernel. */
static void inbox_prepare(uint32_t i)
{
	struct incoming *m = &incoming[i];

	m->iov = (struct iovec){m->bytes, sizeof(m->bytes)};
	inbox[i].msg_hdr = (struct msghdr){.msg_iov = &m->iov,
					   .msg_iovlen = 1,
					   .msg_control = m->control.buf,
					   .msg_controllen = sizeof(m->control.buf)};
}

/* Receives into the inbox; returns how many, or negative errno.  One without bytes is the end. */
static int stream_receive(const struct umad_file *f, uint32_t most)
{
	int n;

	/* Each place is made ready again when its message has been taken. */
	if (!inbox[0].msg_hdr.msg_iov)
		for (uint32_t i = 0; i < INBOX; i++)
			inbox_prepare(i);
	do {
		n = recvmmsg(f->sock.fd, inbox, most, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
		/* The program closed with something unread; what it wrote before still comes. */
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n < 0 ? -errno : n;
}

/* Ends a file that has come to its end, or that nobody needs. */
static void file_fail(struct umad_file *f, bool bad)
{
	if (bad)
		log_warn("umad file %lu: bad message", (unsigned long)f->token);
	umad_file_end(f);
}

/* Takes a message.  It closes the descriptor that came along, whatever happens to the file. */
static void incoming_take(struct umad_file *f, uint32_t i)
{
	struct msghdr *mh = &inbox[i].msg_hdr;
	int file = attached_take(mh);
	uint32_t n = inbox[i].msg_len;

	if (!f->ended &&
	    (!n || mh->msg_flags & MSG_TRUNC || !bytes_take(f, incoming[i].bytes, n, file)))
		file_fail(f, n);
	if (file >= 0)
		close(file);
	inbox_prepare(i);
}

bool umad_file_take(struct umad_file *f, uint32_t most)
{
	uint32_t taken = 0;

	while (taken < most && !f->ended) {
		uint32_t asked = min_u32(most - taken, INBOX);
		int n = stream_receive(f, asked);

		if (n == -EAGAIN)
			return true;
		/* Messages that the kernel has no memory for now wait. */
		if (n == -ENOMEM || n == -ENOBUFS)
			return false;
		if (n < 0) {
			file_fail(f, true);
			return true;
		}
		for (int i = 0; i < n; i++)
			incoming_take(f, (uint32_t)i);
		/* The kernel found no more messages; the next one makes an event. */
		if ((uint32_t)n < asked)
			return true;
		taken += (uint32_t)n;
	}
	return f->ended;
}

void umad_file_drain(struct umad_file *f)
{
	bool all = false;

	for (uint32_t taken = 0; taken < MOST_THERE && !all; taken += BATCH)
		all = umad_file_take(f, BATCH);
	if (!all)
		(void)umad_file_watch(f);
}

void umad_file_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct umad_file *f = container_of(src, struct umad_file, sock);

	(void)l;
	if (f->ended)
		return;
	if (events & EPOLLOUT)
		umad_file_flush(f);
	/* The rest makes an event of the next round; without the watch there would be none. */
	while (!umad_file_take(f, BATCH) && !umad_file_watch(f))
		;
}
