// SPDX-License-Identifier: BSD-2-Clause
/* Who connects, and when it is time to leave; see server.h. */
#include "fabric/daemon/server.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "fabric/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * The daemon's run-time directory, which others may remove: the end of a session, cleaners of /tmp,
 * a user.  A daemon that nobody finds any more would stay for ever, so it watches for that.
 */

/* ---- notices that the run-time directory has gone ---- */

/*
 * Watches the directory and the one above it, because a directory that moves with the one above it
 * gets no event itself.
 */
static bool watch_both(int fd, const char *dir)
{
	const uint32_t moved = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	char parent[RUNDIR_BYTES + 4];

	snprintf(parent, sizeof(parent), "%s/..", dir);
	return inotify_add_watch(fd, dir, IN_DELETE | IN_MOVED_FROM | moved) >= 0 &&
	       inotify_add_watch(fd, parent, moved) >= 0;
}

/* Watches the directory.  Returns a descriptor that is readable when something in it has been
 * removed, or a negative errno. */
static must_check int home_watch(const char *dir)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	int ret;

	if (fd < 0)
		return -errno;
	if (watch_both(fd, dir))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/* Reads the descriptor.  True: another directory, or none, has taken the place of ours. */
static must_check bool home_has_gone(int watch, const char *dir, int lock)
{
	char events[1024];

	while (read(watch, events, sizeof(events)) > 0)
		;
	return !rundir_lock_stands(dir, lock);
}

#define BACKLOG 4096
/*
 * How long the daemon rests when something fails that it cannot wait for, and how often it does so
 * for memory for one client.
 */
#define REST_US		1000
#define NO_MEMORY_TRIES 200u
#define BATCH		64 /* messages of a client, before others have their turn */

/* The program that started us connects at once; if it died instead, nobody needs us. */
#define FIRST_CLIENT_MS FABRIC_TIMEOUT_MS

#define DEAF_MS 1000

/* Refuses a client of another version or another user, by a head that every version understands. */
static void server_refuse(int sock, int status)
{
	struct msg m = {0};

	msg_prepare(&m, MSG_HELLO, MSG_REPLY, 1, status);
	if (msg_send(sock, &m, NULL, 0, MSG_DONTWAIT))
		log_debug("cannot tell a client why it is refused");
}

/* Reads what the client may have asked already, because a close with unread data would turn our
 * answer into an error. */
static void turn_off(int sock, int status)
{
	struct msg m;

	shutdown(sock, SHUT_RD);
	while (recv(sock, &m, sizeof(m), MSG_DONTWAIT) > 0)
		;
	server_refuse(sock, status);
	close(sock);
}

static void conn_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct conn *c = container_of(src, struct conn, sock);
	struct server *s = c->server;
	int fds[MSG_MAX_FDS];
	struct msg m;
	int ret;

	(void)l;
	if (c->dead || s->leave)
		return;
	if (events & EPOLLOUT)
		conn_flush(s, c);
	/* Bounded, so that one client does not keep the others waiting. */
	for (int i = 0; i < BATCH; i++) {
		ret = msg_recv(c->sock.fd, &m, fds, 1u << MSG_REQUEST, MSG_DONTWAIT);
		if (ret == -EAGAIN)
			return;
		if (ret == -ENOMEM && c->no_memory++ < NO_MEMORY_TRIES) {
			/* What the client sent is still there, and we come back for it. */
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

static void conn_new(struct server *s, int sock)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;
	struct conn *c;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		turn_off(sock, -EIO);
		return;
	}
	if (cred.uid != geteuid()) {
		turn_off(sock, -EPERM);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(sock);
		return;
	}
	c->server = s;
	c->sock = (struct source){conn_ready, sock};
	c->life.fd = -1;
	c->pid = cred.pid;
	c->slot = CONN_NO_SLOT;
	c->queue_end = &c->queue;
	if (loop_watch(&s->fabric->loop, &c->sock, EPOLLIN)) {
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
 * Answers a client that connects when no descriptor is left.  If it waited instead, it would keep
 * the listener ready.  0, -EAGAIN if there is nobody (without a descriptor accept does not say so),
 * or the reason why not even that is possible.
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

/* Accepts all clients that have connected until now. */
static void listener_accept_all(struct server *s)
{
	int ret;

	do {
		int sock = listener_accept(s);

		if (sock >= 0)
			conn_new(s, sock);
		ret = sock >= 0 || sock == -EAGAIN ? sock : turn_away(s, sock);
	} while (ret >= 0);
	if (ret == -EAGAIN)
		return;
	log_warn("cannot accept: %s", strerror(-ret));
	/* A listener that stays in the watch would be ready at once, again and again. */
	if (!loop_rewatch(&s->fabric->loop, &s->listener, 0))
		usleep(REST_US);
	s->deaf = true;
}

/* Tells whether it is time to go.  Files that programs hold without a connection count. */
static bool nobody_left(const struct server *s)
{
	return s->served && !s->nconns && !s->fabric->umad.nfiles && !s->fabric->cm.nfiles &&
	       !s->stay;
}

/* Who comes after the last one has gone is turned away, and starts a fabric with options of its own,
 * also if we have not had the processor in between. */
static void listener_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct server *s = container_of(src, struct server, listener);

	(void)l, (void)events;
	if (!s->leave && !nobody_left(s))
		listener_accept_all(s);
}

/* Tries again: something has happened or time has passed, so descriptors may be free. */
static void listener_try(struct server *s)
{
	s->deaf = false;
	if (s->spare < 0)
		s->spare = spare_open();
	(void)loop_rewatch(&s->fabric->loop, &s->listener, EPOLLIN);
}

static void signals_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct server *s = container_of(src, struct server, signals);
	struct signalfd_siginfo info;

	(void)l, (void)events;
	if (read(src->fd, &info, sizeof(info)) == sizeof(info))
		s->leave = true;
}

static void home_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct server *s = container_of(src, struct server, home);

	(void)l, (void)events;
	if (!home_has_gone(src->fd, s->fabric->dir, s->lock))
		return;
	log_warn("fabric %s: %s has been removed; leaving", s->fabric->name, s->fabric->dir);
	s->leave = true;
}

/* Watches the directory; if that is not possible, the fabric works all the same. */
static void home_open(struct server *s)
{
	int fd = home_watch(s->fabric->dir);

	s->home = (struct source){home_ready, fd};
	if (fd < 0 || loop_watch(&s->fabric->loop, &s->home, EPOLLIN))
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
	return loop_watch(&s->fabric->loop, &s->listener, EPOLLIN);
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
	return loop_watch(&s->fabric->loop, &s->signals, EPOLLIN);
}

int server_open(struct server *s, struct fabric *f, int lock)
{
	int ret;

	s->fabric = f;
	s->lock = lock;
	s->spare = spare_open();
	ret = signals_open(s);
	if (ret)
		return ret;
	home_open(s);
	port_notes_open(s);
	gsi_open(s);
	return listener_open(s);
}

/* Returns how long a round may wait.  0: nobody has come in time. */
static int round_wait_ms(const struct server *s, uint64_t first_client_ns)
{
	uint64_t now;

	if (s->deaf)
		return DEAF_MS;
	if (s->served || s->stay)
		return -1;
	now = clock_ns();
	return now < first_client_ns ? (int)((first_client_ns - now + 999999) / 1000000) : 0;
}

void server_run(struct server *s)
{
	uint64_t first_client_ns = clock_ns() + FIRST_CLIENT_MS * 1000000ull;

	while (!s->leave) {
		int timeout = round_wait_ms(s, first_client_ns);
		bool deaf = s->deaf;
		int n = loop_round(&s->fabric->loop, timeout);

		if (n < 0 && n != -EINTR) {
			log_error("epoll_wait: %s", strerror(-n));
			return;
		}
		/* A signal has interrupted the round, which is rare, so this rest costs nobody
		 * anything. */
		if (n < 0)
			usleep(REST_US);
		if (n == 0 && timeout == 0)
			return;
		if (deaf)
			listener_try(s);
		if (nobody_left(s))
			return;
	}
}

bool server_has_programs(const struct server *s)
{
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++)
		if (s->by_slot[slot] && !s->by_slot[slot]->carrier_ended)
			return true;
	return false;
}

void server_close(struct server *s)
{
	/* Tells nobody that a peer is gone: the processes go on without us. */
	while (s->conns) {
		struct conn *c = s->conns;

		s->conns = c->next;
		conn_drop(c);
	}
	if (s->listener.fd >= 0)
		close(s->listener.fd);
	if (s->signals.fd >= 0)
		close(s->signals.fd);
	if (s->home.fd >= 0)
		close(s->home.fd);
	if (s->spare >= 0)
		close(s->spare);
}
