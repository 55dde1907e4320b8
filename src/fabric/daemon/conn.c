// SPDX-License-Identifier: BSD-2-Clause
/* Connections: what the daemon sends them, and their end; see server.h. */
#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/daemon/descriptor.h"
#include "fabric/daemon/server.h"

#define MAX_QUEUED 4096u /* messages; each end of a peer and each new channel makes one */

struct outgoing {
	struct outgoing *next;
	struct msg m;
	int fds[MSG_MAX_FDS];
	unsigned nfds;
};

static void outgoing_free(struct outgoing *o)
{
	for (unsigned i = 0; i < o->nfds; i++)
		descriptor_put(o->fds[i]);
	free(o);
}

static bool conn_queue(struct conn *c, const struct msg *m, const int *fds, unsigned nfds)
{
	struct outgoing *o;

	if (c->queued == MAX_QUEUED)
		return false;
	o = calloc(1, sizeof(*o));
	if (!o)
		return false;
	memcpy(&o->m, m, m->head.length);
	/* The owner may give the descriptor up before this message leaves, so the message holds
	 * it. */
	while (o->nfds < nfds) {
		if (!descriptor_hold(fds[o->nfds])) {
			outgoing_free(o);
			return false;
		}
		o->fds[o->nfds] = fds[o->nfds];
		o->nfds++;
	}
	*c->queue_end = o;
	c->queue_end = &o->next;
	c->queued++;
	return true;
}

static void queue_pop(struct conn *c)
{
	struct outgoing *o = c->queue;

	c->queue = o->next;
	if (!c->queue)
		c->queue_end = &c->queue;
	c->queued--;
	outgoing_free(o);
}

void conn_send(struct server *s, struct conn *c, const struct msg *m, const int *fds, unsigned nfds)
{
	int ret = -EAGAIN;

	if (c->dead)
		return;
	if (!c->queue)
		ret = msg_send(c->sock.fd, m, fds, nfds, MSG_DONTWAIT);
	if (ret == -EAGAIN) {
		if (!c->queue)
			(void)loop_rewatch(&s->fabric->loop, &c->sock, EPOLLIN | EPOLLOUT);
		if (conn_queue(c, m, fds, nfds))
			return;
		log_warn("process %d does not read what it is told: cut off", (int)c->pid);
		ret = -ENOBUFS;
	}
	/* This does not end the connection, because the caller may be in the middle of a walk over
	 * slots.  The shutdown makes the loop come back to it. */
	if (ret)
		shutdown(c->sock.fd, SHUT_RDWR);
}

/* True while at most half of the socket's room is taken, so that messages that must not be lost find
 * the other half. */
static bool conn_has_room(const struct conn *c)
{
	int unread = 0, room = 0;
	socklen_t length = sizeof(room);

	return !c->queue && !ioctl(c->sock.fd, SIOCOUTQ, &unread) &&
	       !getsockopt(c->sock.fd, SOL_SOCKET, SO_SNDBUF, &room, &length) && unread < room / 2;
}

void conn_send_lossy(struct conn *c, const struct msg *m)
{
	if (!c->dead && conn_has_room(c) && msg_send(c->sock.fd, m, NULL, 0, MSG_DONTWAIT))
		log_debug("process %d does not get a message that may be lost", (int)c->pid);
}

bool conn_has_port(const struct server *s, const struct conn *c, uint32_t row)
{
	const struct fabric *f = s->fabric;
	uint32_t host, first;

	if (c->slot == CONN_NO_SLOT)
		return false;
	host = f->rows[c->slot].host;
	first = f->hosts[host].first_port;
	return row >= first && row - first < f->topology.hosts[host].nports;
}

bool conn_is_reading(const struct conn *c)
{
	return !c->queue &&
	       (!c->ends_told || clock_ns() - c->ends_told_ns < FABRIC_TIMEOUT_MS * 1000000ull);
}

void conn_flush(struct server *s, struct conn *c)
{
	while (c->queue) {
		int ret = msg_send(c->sock.fd, &c->queue->m, c->queue->fds, c->queue->nfds,
				   MSG_DONTWAIT);

		if (ret == -EAGAIN)
			return;
		if (ret) {
			shutdown(c->sock.fd, SHUT_RDWR);
			return;
		}
		queue_pop(c);
	}
	(void)loop_rewatch(&s->fabric->loop, &c->sock, EPOLLIN);
}

static void conn_close(struct conn *c)
{
	if (c->ended)
		c->ended(c);
	capture_free(c);
	while (c->queue)
		queue_pop(c);
	close(c->sock.fd);
	if (c->life.fd >= 0)
		close(c->life.fd);
}

void conn_drop(struct conn *c)
{
	groups_drop(c);
	conn_close(c);
	free(c);
}

static void conn_bury(struct loop_grave *g)
{
	free(container_of(g, struct conn, grave));
}

/* The functions of struct slot_notes. */
static void conn_note_gone(void *user, uint32_t to, uint32_t peer)
{
	struct server *s = user;
	struct msg note = {.peer.peer = peer};
	struct conn *c = s->by_slot[to];

	msg_prepare(&note, MSG_GONE, MSG_NOTE, 0, 0);
	if (!c)
		return;
	if (!c->ends_told++)
		c->ends_told_ns = clock_ns();
	conn_send(s, c, &note, NULL, 0);
}

/*
 * A driver that was killed may have rung doorbells that it has not looked at any more.  Whoever
 * has the memory of its host's functions can do that.
 */
static void conn_functions_left(struct server *s, const struct conn *left)
{
	const struct slot_row *rows = s->fabric->rows;
	struct msg note = {0};

	msg_prepare(&note, MSG_FUNCTION, MSG_NOTE, 0, 0);
	for (struct conn *c = s->conns; c; c = c->next)
		if (c->functions && rows[c->slot].host == rows[left->slot].host)
			conn_send(s, c, &note, NULL, 0);
}

void conn_end(struct server *s, struct conn *c)
{
	const struct slot_notes notes = {conn_note_gone, s};

	if (c->dead)
		return;
	c->dead = true;
	c->grave.bury = conn_bury;
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	loop_bury(&s->fabric->loop, &c->grave);
	s->nconns--;
	captures_leave(s, c);
	fault_owner_ended(s->fabric, c);
	groups_leave(s, c);
	if (c->slot != CONN_NO_SLOT) {
		log_info("slot %d: process %d is gone", c->slot, (int)c->pid);
		s->by_slot[c->slot] = NULL;
		if (c->carrier_ended)
			c->carrier_ended(c);
		slot_release(s->fabric, (uint32_t)c->slot, &notes);
		if (c->functions)
			conn_functions_left(s, c);
	}
	conn_close(c);
}

static void life_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct conn *c = container_of(src, struct conn, life);

	(void)l, (void)events;
	conn_end(c->server, c);
}

void conn_watch_life(struct server *s, struct conn *c)
{
	c->life.fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->life.fd < 0)
		return; /* the kernel is old, so only the connection's end tells */
	c->life.ready = life_ready;
	if (loop_watch(&s->fabric->loop, &c->life, EPOLLIN)) {
		close(c->life.fd);
		c->life.fd = -1;
	}
}
