// SPDX-License-Identifier: BSD-2-Clause
/*
 * The token of a port's IsSM bit.  A holder is a socket, whose end gives the token to the next one
 * that waits.  A byte lies in the socket for ever, so that it is ready whenever the program polls
 * it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/daemon/umad/umad.h"

struct issm_file {
	struct source sock;
	struct loop_grave grave;
	struct umad *umad;
	struct issm_file *next;
	uint32_t row;
	bool ended, minded; /* the built-in SM has been told */
};

static void holder_free(struct loop_grave *g)
{
	free(container_of(g, struct issm_file, grave));
}

static bool issm_is_held(const struct umad *u, uint32_t row)
{
	for (const struct issm_file *h = u->holders; h; h = h->next)
		if (h->row == row)
			return true;
	return false;
}

static struct issm_waiter *waiter_first(const struct umad *u, uint32_t row)
{
	struct issm_waiter *w = u->waiters;

	while (w && w->row != row)
		w = w->next;
	return w;
}

static void holder_unlink(struct issm_file *h)
{
	struct issm_file **at = &h->umad->holders;

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	h->umad->nfiles--;
}

/* Ends the holder without granting the token to the next. */
static void holder_end(struct issm_file *h)
{
	struct umad *u = h->umad;

	h->ended = true;
	holder_unlink(h);
	close(h->sock.fd);
	net_hold_issm(u->fabric->net, h->row, -1);
	if (h->minded)
		sm_program_ended(u->sm);
	loop_bury(u->fabric->loop, &h->grave);
}

static int holder_begin(struct umad *u, uint32_t row, int *fd);

/* Passes the token on.  A waiter that gets an error instead lets the next one have it. */
static void token_pass(struct umad *u, uint32_t row)
{
	struct issm_waiter *w;

	while (!issm_is_held(u, row) && (w = waiter_first(u, row))) {
		int fd = -1, ret;

		issm_wait_end(w);
		ret = holder_begin(u, row, &fd);
		w->granted(w, ret ? ret : fd);
	}
}

static void holder_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct issm_file *h = container_of(src, struct issm_file, sock);
	struct umad *u = h->umad;
	uint8_t bytes[64];
	ssize_t n;

	(void)l, (void)events;
	if (h->ended)
		return;
	/* Drops what a program wrote that took it for a socket. */
	do {
		n = recv(h->sock.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0 && errno != ECONNRESET)
		return;
	holder_end(h);
	token_pass(u, h->row);
}

static int stream_open(struct issm_file *h, int *other)
{
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	h->sock = (struct source){holder_ready, pair[0]};
	ret = send(pair[0], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
	if (!ret)
		ret = loop_watch(h->umad->fabric->loop, &h->sock, EPOLLIN);
	if (ret) {
		close(pair[0]);
		close(pair[1]);
		return ret;
	}
	*other = pair[1];
	return 0;
}

static int holder_begin(struct umad *u, uint32_t row, int *fd)
{
	struct issm_file *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return -ENOMEM;
	h->umad = u;
	h->row = row;
	h->grave.bury = holder_free;
	ret = stream_open(h, fd);
	if (ret) {
		free(h);
		return ret;
	}
	h->next = u->holders;
	u->holders = h;
	u->nfiles++;
	h->minded = u->sm && sm_minds(u->sm, row);
	if (h->minded)
		sm_program_began(u->sm);
	net_hold_issm(u->fabric->net, row, 1);
	return 0;
}

int issm_open(struct umad *u, uint32_t row, int *fd)
{
	if (issm_is_held(u, row) || waiter_first(u, row))
		return -EAGAIN;
	return holder_begin(u, row, fd);
}

void issm_wait(struct umad *u, struct issm_waiter *w)
{
	struct issm_waiter **at = &u->waiters;

	while (*at)
		at = &(*at)->next;
	w->next = NULL;
	w->prev = at;
	*at = w;
}

void issm_wait_end(struct issm_waiter *w)
{
	if (!w->prev)
		return;
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->prev = NULL;
}

void issm_close(struct umad *u)
{
	while (u->holders)
		holder_end(u->holders);
}
