// SPDX-License-Identifier: BSD-2-Clause
/* The epoll loop and its connections; see server.h. */
#include "fabric/daemon/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/daemon/descriptor.h"
#include "fabric/daemon/home.h"

#define BACKLOG	   4096
#define MAX_QUEUED 4096u /* messages; each end of a peer and each new channel make one */
/* Where something fails that cannot be waited for, and how often so for memory for one client. */
#define REST_US		1000
#define NO_MEMORY_TRIES 200u
#define BATCH		64

/* Whoever started us connects at once; if it died instead, nobody needs us. */
#define FIRST_CLIENT_MS FABRIC_TIMEOUT_MS

#define DEAF_MS 1000

struct outgoing {
	struct outgoing *next;
	struct msg m;
	int fds[MSG_MAX_FDS];
	unsigned nfds;
};

static int server_watch(struct server *s, struct source *src, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = src};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, src->fd, &ev) ? -errno : 0;
}

static bool watch_change(struct server *s, struct source *src, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = src};

	return !epoll_ctl(s->epoll, EPOLL_CTL_MOD, src->fd, &ev);
}

/* ---- sending ---- */

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
	/* The owner may give its use up before this message leaves. */
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
			(void)watch_change(s, &c->sock, EPOLLIN | EPOLLOUT);
		if (conn_queue(c, m, fds, nfds))
			return;
		log_warn("process %d does not read what it is told: cut off", (int)c->pid);
		ret = -ENOBUFS;
	}
	/* Does not end the connection, because the caller may be in the middle of a walk over
	 * slots.  The shutdown makes the loop come back to it. */
	if (ret)
		shutdown(c->sock.fd, SHUT_RDWR);
}

bool conn_is_reading(const struct conn *c)
{
	return !c->queue &&
	       (!c->ends_told || clock_ns() - c->ends_told_ns < FABRIC_TIMEOUT_MS * 1000000ull);
}

static void conn_flush(struct server *s, struct conn *c)
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
	(void)watch_change(s, &c->sock, EPOLLIN);
}

/* ---- receiving ---- */

void conn_end(struct server *s, struct conn *c)
{
	const struct slot_notes notes = {request_note_gone, s};

	if (c->dead)
		return;
	c->dead = true;
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->next = s->graves;
	s->graves = c;
	s->nconns--;
	if (c->slot != CONN_NO_SLOT) {
		log_info("slot %d: process %d is gone", c->slot, (int)c->pid);
		s->by_slot[c->slot] = NULL;
		slot_release(s->fabric, (uint32_t)c->slot, &notes);
	}
	while (c->queue)
		queue_pop(c);
	close(c->sock.fd);
	if (c->life.fd >= 0)
		close(c->life.fd);
}

static void graves_clear(struct server *s)
{
	while (s->graves) {
		struct conn *c = s->graves;

		s->graves = c->next;
		free(c);
	}
}

/* Refuses a client of another version or another user, by a head that every version understands. */
static void server_refuse(int sock, int status)
{
	struct msg m = {0};

	msg_prepare(&m, MSG_HELLO, MSG_REPLY, 1, status);
	if (msg_send(sock, &m, NULL, 0, MSG_DONTWAIT))
		log_debug("cannot tell a client why it is refused");
}

/* Reads what the client may have asked already: closing with it unread would turn our answer into
 * an error. */
static void turn_off(int sock, int status)
{
	struct msg m;

	shutdown(sock, SHUT_RD);
	while (recv(sock, &m, sizeof(m), MSG_DONTWAIT) > 0)
		;
	server_refuse(sock, status);
	close(sock);
}

static void conn_ready(struct server *s, struct source *src, uint32_t events)
{
	struct conn *c = container_of(src, struct conn, sock);
	int fds[MSG_MAX_FDS];
	struct msg m;
	int ret;

	if (c->dead)
		return;
	if (events & EPOLLOUT)
		conn_flush(s, c);
	/* Bounded, so that one client does not keep the others waiting. */
	for (int i = 0; i < BATCH; i++) {
		ret = msg_recv(c->sock.fd, &m, fds, 1u << MSG_REQUEST, MSG_DONTWAIT);
		if (ret == -EAGAIN)
			return;
		if (ret == -ENOMEM && c->no_memory++ < NO_MEMORY_TRIES) {
			/* What was sent is still there, and we come back for it. */
			usleep(REST_US);
			return;
		}
		if (ret)
			break;
		c->no_memory = 0;
		request_answer(s, c, &m);
		if (c->dead || s->leave)
			return;
	}
	if (!ret)
		return;
	if (ret == -EPROTO)
		server_refuse(c->sock.fd, -EPROTO);
	else if (ret != -ECONNRESET)
		log_warn("process %d: bad message (%s)", (int)c->pid, strerror(-ret));
	conn_end(s, c);
}

static void life_ready(struct server *s, struct source *src, uint32_t events)
{
	(void)events;
	conn_end(s, container_of(src, struct conn, life));
}

void conn_watch_life(struct server *s, struct conn *c)
{
	c->life.fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->life.fd < 0)
		return; /* an old kernel: the end of the connection must do */
	c->life.ready = life_ready;
	if (server_watch(s, &c->life, EPOLLIN)) {
		close(c->life.fd);
		c->life.fd = -1;
	}
}

static void conn_new(struct server *s, int sock)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;
	struct conn *c;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.uid != geteuid()) {
		turn_off(sock, -EPERM);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(sock);
		return;
	}
	c->sock = (struct source){conn_ready, sock};
	c->life.fd = -1;
	c->pid = cred.pid;
	c->slot = CONN_NO_SLOT;
	c->queue_end = &c->queue;
	if (server_watch(s, &c->sock, EPOLLIN)) {
		close(sock);
		free(c);
		return;
	}
	c->next = s->conns;
	c->prev = &s->conns;
	if (c->next)
		c->next->prev = &c->next;
	s->conns = c;
	s->nconns++;
	s->served = true;
}

/* Accepts the next connection.  The descriptor or negative errno. */
static int listener_accept(const struct server *s)
{
	int sock;

	do {
		sock = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (sock < 0 && (errno == EINTR || errno == ECONNABORTED));
	return sock < 0 ? -errno : sock;
}

static int spare_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/*
 * Tells a client that connects when no descriptor is left.  If it waited instead, it would keep the
 * listener ready. 0, -EAGAIN if there is nobody (without a descriptor accept does not say so), or
 * why not even that is possible.
 */
static int turn_away(struct server *s, int why)
{
	int sock;

	if (s->spare < 0)
		return why;
	close(s->spare);
	sock = listener_accept(s);
	if (sock >= 0)
		turn_off(sock, why);
	s->spare = spare_open();
	return sock < 0 ? sock : 0;
}

static void listener_ready(struct server *s, struct source *src, uint32_t events)
{
	int ret;

	(void)src, (void)events;
	do {
		int sock = listener_accept(s);

		if (sock >= 0)
			conn_new(s, sock);
		ret = sock >= 0 || sock == -EAGAIN ? sock : turn_away(s, sock);
	} while (ret >= 0);
	if (ret == -EAGAIN)
		return;
	log_warn("cannot accept: %s", strerror(-ret));
	/* One that stays in the watch is ready at once and each time. */
	if (!watch_change(s, &s->listener, 0))
		usleep(REST_US);
	s->deaf = true;
}

/* Tries again: something has happened or time has passed, so there may be descriptors. */
static void listener_try(struct server *s)
{
	if (!s->deaf)
		return;
	s->deaf = false;
	if (s->spare < 0)
		s->spare = spare_open();
	(void)watch_change(s, &s->listener, EPOLLIN);
}

static void signals_ready(struct server *s, struct source *src, uint32_t events)
{
	struct signalfd_siginfo info;

	(void)events;
	if (read(src->fd, &info, sizeof(info)) == sizeof(info))
		s->leave = true;
}

static void home_ready(struct server *s, struct source *src, uint32_t events)
{
	(void)events;
	if (!home_has_gone(src->fd, s->fabric->dir, s->lock))
		return;
	log_warn("fabric %s: %s has been removed; leaving", s->fabric->name, s->fabric->dir);
	s->leave = true;
}

/* Not to be had, the fabric works all the same. */
static void home_open(struct server *s)
{
	int fd = home_watch(s->fabric->dir);

	s->home = (struct source){home_ready, fd};
	if (fd < 0 || server_watch(s, &s->home, EPOLLIN))
		log_info("fabric %s: nobody would notice that %s is removed", s->fabric->name,
			 s->fabric->dir);
}

/* ---- the loop ---- */

static int listener_open(struct server *s)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", s->fabric->dir) >=
	    (int)sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	s->listener = (struct source){listener_ready, fd};
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, BACKLOG))
		return -errno;
	return server_watch(s, &s->listener, EPOLLIN);
}

static int signals_open(struct server *s)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_SETMASK, &set, NULL))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	s->signals = (struct source){signals_ready, fd};
	return server_watch(s, &s->signals, EPOLLIN);
}

int server_open(struct server *s, struct fabric *f, int lock)
{
	int ret;

	s->fabric = f;
	s->lock = lock;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return -errno;
	s->spare = spare_open();
	ret = signals_open(s);
	if (ret)
		return ret;
	home_open(s);
	return listener_open(s);
}

/* Is it time to go?  Clients that have connected but are not accepted yet count. */
static bool nobody_left(struct server *s)
{
	if (s->nconns || s->stay || !s->served)
		return false;
	listener_ready(s, &s->listener, EPOLLIN);
	return !s->nconns;
}

void server_run(struct server *s)
{
	struct epoll_event events[BATCH];

	while (!s->leave) {
		int timeout = s->served || s->stay ? -1 : FIRST_CLIENT_MS;
		int n = epoll_wait(s->epoll, events, BATCH, s->deaf ? DEAF_MS : timeout);

		if (n < 0 && errno != EINTR) {
			log_error("epoll_wait: %s", strerror(errno));
			return;
		}
		/* Nothing interrupts us in earnest, so this costs nobody anything. */
		if (n < 0)
			usleep(REST_US);
		if (n == 0 && timeout > 0 && !s->deaf)
			return;
		listener_try(s);
		for (int i = 0; i < n && !s->leave; i++) {
			struct source *src = events[i].data.ptr;

			src->ready(s, src, events[i].events);
		}
		graves_clear(s);
		if (nobody_left(s))
			return;
	}
}

bool server_has_programs(const struct server *s)
{
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++)
		if (s->by_slot[slot])
			return true;
	return false;
}

void server_close(struct server *s)
{
	/* Tells nobody that a peer is gone: the processes go on without us. */
	while (s->conns) {
		struct conn *c = s->conns;

		s->conns = c->next;
		while (c->queue)
			queue_pop(c);
		close(c->sock.fd);
		if (c->life.fd >= 0)
			close(c->life.fd);
		free(c);
	}
	graves_clear(s);
	if (s->listener.fd >= 0)
		close(s->listener.fd);
	if (s->signals.fd >= 0)
		close(s->signals.fd);
	if (s->home.fd >= 0)
		close(s->home.fd);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->spare >= 0)
		close(s->spare);
}
