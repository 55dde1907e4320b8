// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests and their replies.  A thread that asks waits on its own stack until the control thread
 * hands it the reply.  When the connection ends, all of them get -ECONNRESET.
 */
#include "fabric/client/connection.h"

#include "base/log.h"
#include "base/thread.h"
#include "base/trace.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A thread that waits for a reply; lives on its stack. */
struct waiter {
	struct waiter *next;
	struct msg *m; /* request, then reply */
	int fds[MSG_MAX_FDS];
	uint32_t seq;
	int result;
	bool done;
};

void client_calls_open(struct fabric_client *c)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->answered, &attr);
	pthread_condattr_destroy(&attr);
}

void client_calls_close(struct fabric_client *c)
{
	pthread_cond_destroy(&c->answered);
	pthread_mutex_destroy(&c->lock);
}

/* Gives -ECONNRESET to all that wait, and to all that ask from now on.  True: we are closing. */
static bool client_calls_end(struct fabric_client *c)
{
	bool closing;

	pthread_mutex_lock(&c->lock);
	c->lost = true;
	closing = c->closing;
	pthread_cond_broadcast(&c->answered);
	pthread_mutex_unlock(&c->lock);
	return closing;
}

/* Says that we are about to end the connection.  True: it has ended before. */
static bool client_closing_begin(struct fabric_client *c)
{
	bool lost;

	pthread_mutex_lock(&c->lock);
	c->closing = true;
	lost = c->lost;
	pthread_mutex_unlock(&c->lock);
	return lost;
}

static bool client_is_closing(struct fabric_client *c)
{
	bool closing;

	pthread_mutex_lock(&c->lock);
	closing = c->closing;
	pthread_mutex_unlock(&c->lock);
	return closing;
}

/* ---- the socket; the program may have closed it ---- */

int client_send(struct fabric_client *c, const struct msg *m, int flags)
{
	return hidden_ours(&c->sock) ? msg_send(c->sock.fd, m, NULL, 0, flags) : -ECONNRESET;
}

/* The control thread waits here for a message; it may be cancelled in this wait only. */
static must_check int client_recv(struct fabric_client *c, struct msg *m, int fds[MSG_MAX_FDS])
{
	int ret;

	if (!hidden_ours(&c->sock))
		return -ECONNRESET;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	ret = msg_recv(c->sock.fd, m, fds, 1u << MSG_REPLY | 1u << MSG_NOTE, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return ret;
}

/* False: the descriptor has gone, and a thread in a system call on the socket goes on waiting. */
static bool client_shutdown(struct fabric_client *c)
{
	return hidden_ours(&c->sock) && !shutdown(c->sock.fd, SHUT_RDWR);
}

/* ---- requests ---- */

static int waiter_wait(struct fabric_client *c, struct waiter *w)
{
	struct timespec limit;

	clock_gettime(CLOCK_MONOTONIC, &limit);
	limit.tv_sec += FABRIC_TIMEOUT_MS / 1000;
	while (!w->done && !c->lost)
		if (pthread_cond_timedwait(&c->answered, &c->lock, &limit))
			break;
	for (struct waiter **p = &c->waiters; *p; p = &(*p)->next) {
		if (*p == w) {
			*p = w->next;
			break;
		}
	}
	if (w->done)
		return w->result;
	return c->lost ? -ECONNRESET : -ETIMEDOUT;
}

int client_call(struct fabric_client *c, struct msg *m, enum msg_type type, int fds[MSG_MAX_FDS])
{
	struct waiter w = {.m = m, .fds = {-1, -1, -1}};
	int cancel, ret;

	/* A thread that is cancelled here would leave its stack in the list. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&c->lock);
	if (c->lost) {
		ret = -ECONNRESET;
		goto unlock;
	}
	if (++c->seq == CLIENT_SEQ_NOBODY)
		c->seq = 1; /* 0 marks notifications */
	w.seq = c->seq;
	w.next = c->waiters;
	c->waiters = &w;
	msg_prepare(m, type, MSG_REQUEST, w.seq, 0);
	ret = client_send(c, m, 0);
	if (ret) {
		w.done = true;
		w.result = ret;
	}
	ret = waiter_wait(c, &w);
	if (ret)
		trace(fabric, refused, msg_type_name(type), trace_errno(ret));
unlock:
	pthread_mutex_unlock(&c->lock);
	pthread_setcancelstate(cancel, NULL);
	for (unsigned i = 0; i < MSG_MAX_FDS; i++)
		fds[i] = w.fds[i];
	if (ret)
		msg_close_fds(fds);
	return ret;
}

/* Hands a reply with its descriptors to the thread that waits for it.  error: why there are no
 * descriptors, or 0.  False: nobody waits any more (timed out). */
static bool client_answer(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS],
			  int error)
{
	struct waiter *w;

	pthread_mutex_lock(&c->lock);
	for (w = c->waiters; w && w->seq != m->head.seq; w = w->next)
		;
	if (w) {
		*w->m = *m;
		for (unsigned i = 0; i < MSG_MAX_FDS; i++) {
			w->fds[i] = fds[i];
			fds[i] = -1;
		}
		w->result = error ? error : m->head.status;
		w->done = true;
		pthread_cond_broadcast(&c->answered);
	}
	pthread_mutex_unlock(&c->lock);
	return w;
}

#define CONTROL_STACK_BYTES (256u << 10)
#define REMAINS_ATTEMPTS    25

/* How often we ask again for channels that we had no descriptor for. */
#define MISSED_RETRY_MS 50

/* ---- channels that could not be taken ---- */

static void missed_set(struct fabric_client *c, uint32_t peer, bool missed)
{
	uint64_t bit = 1ull << peer % 64;
	uint64_t *word = &c->missed[peer / 64];

	if (missed == !!(*word & bit))
		return;
	*word ^= bit;
	c->nmissed += missed ? 1u : UINT32_MAX;
}

static void missed_ask(struct fabric_client *c)
{
	for (uint32_t peer = 0; peer < REGISTRY_SLOTS; peer++) {
		struct msg m = {.peer.peer = peer};

		if (!(c->missed[peer / 64] >> peer % 64 & 1))
			continue;
		msg_prepare(&m, MSG_CHANNEL, MSG_REQUEST, CLIENT_SEQ_NOBODY, 0);
		if (client_send(c, &m, MSG_DONTWAIT))
			return;
	}
}

/* Waits for a message; meanwhile asks again for what was missed. */
static void missed_retry(struct fabric_client *c)
{
	struct pollfd p = {.fd = c->sock.fd, .events = POLLIN};

	while (c->nmissed && hidden_ours(&c->sock) && poll(&p, 1, MISSED_RETRY_MS) <= 0) {
		usleep(1000); /* poll may have failed at once, so this rests */
		missed_ask(c);
	}
}

/* The channel comes by a notification, or by an answer that nobody takes.  If the program has used
 * up its descriptors, we ask again later, and the daemon keeps the channel. */
static void on_channel(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS])
{
	if (m->channel.peer >= REGISTRY_SLOTS || m->channel.side > 1)
		return;
	missed_set(c, m->channel.peer, fds[0] < 0);
	if (fds[0] < 0)
		return;
	c->ops.channel(c->ops.user, (uint16_t)m->channel.peer, fds[0], m->channel.bytes,
		       (int)m->channel.side);
	fds[0] = -1;
}

/* ---- what the control thread hears ---- */

/*
 * A channel that nobody here takes exists nevertheless, and the peer knows of it and may use it.
 * So we treat it as if the peer had opened it.
 */
static void on_reply(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS], int error)
{
	bool taken = m->head.seq != CLIENT_SEQ_NOBODY && client_answer(c, m, fds, error);

	if (m->head.type == MSG_CHANNEL && !m->head.status && (!taken || error))
		on_channel(c, m, fds);
	msg_close_fds(fds);
}

/* ---- notifications ---- */

static void on_gone(struct fabric_client *c, uint16_t peer)
{
	struct msg ack = {.peer.peer = peer};

	missed_set(c, peer, false);
	c->ops.gone(c->ops.user, peer);
	/* The daemon may give that slot to somebody else only now.  This request has no reply. */
	msg_prepare(&ack, MSG_GONE, MSG_REQUEST, 1, 0);
	if (client_send(c, &ack, 0))
		log_debug("cannot acknowledge the end of slot %u", peer);
}

static void on_note(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS])
{
	switch (m->head.type) {
	case MSG_CHANNEL:
		on_channel(c, m, fds);
		break;
	case MSG_GONE:
		if (m->peer.peer < REGISTRY_SLOTS)
			on_gone(c, (uint16_t)m->peer.peer);
		break;
	case MSG_FUNCTION:
		if (c->ops.function)
			c->ops.function(c->ops.user);
		break;
	case MSG_GSI:
		if (c->ops.gsi)
			c->ops.gsi(c->ops.user, &m->gsi.datagram);
		break;
	case MSG_GROUP:
		if (c->ops.group)
			c->ops.group(c->ops.user, &m->group.gid, m->group.joins);
		break;
	case MSG_CAPTURE:
		if (c->ops.capture && fds[0] >= 0)
			c->ops.capture(c->ops.user, &m->capture_ring, fds[0]);
		break;
	case MSG_CAPTURE_END:
		if (c->ops.capture_end)
			c->ops.capture_end(c->ops.user, m->capture_end.id);
		break;
	case MSG_FAULT:
		if (c->ops.fault && m->index.index < FAULT_RULES)
			c->ops.fault(c->ops.user, m->index.index);
		break;
	case MSG_PORT:
		if (m->port.row < c->segments.subnet.nports) {
			trace(port, event, m->port.row, ib_event_name((enum ib_event)m->port.event),
			      "fabric");
			c->ops.port(c->ops.user, m->port.row, (enum ib_event)m->port.event);
		}
		break;
	default:
		break;
	}
	msg_close_fds(fds);
}

static void on_message(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS],
		       int error)
{
	if (msg_kind(m) != MSG_REPLY)
		on_note(c, m, fds);
	else
		on_reply(c, m, fds, error);
}

/*
 * A daemon that was killed leaves its directory, and the client that gets the lock first cleans up.
 * The kernel may close the daemon's socket a moment before it drops the lock; a lock that stays
 * belongs to a new daemon.
 */
static void clean_up(const char *dir, void (*remove)(const char *dir))
{
	const struct timespec nap = {.tv_nsec = 2000000};
	int lock = rundir_lock(dir, false);

	for (int i = 0; i < REMAINS_ATTEMPTS && lock == -EAGAIN; i++) {
		nanosleep(&nap, NULL);
		lock = rundir_lock(dir, false);
	}
	if (lock < 0)
		return;
	remove(dir);
	close(lock);
}

/* Waits a moment until the kernel has memory again.  False: the connection is closing. */
static bool kernel_wait(struct fabric_client *c)
{
	const struct timespec nap = {.tv_nsec = 5000000};

	nanosleep(&nap, NULL);
	return !client_is_closing(c);
}

/* Hears messages until the connection ends, and returns why it ended. */
static int control_hear(struct fabric_client *c)
{
	struct msg m;
	int fds[MSG_MAX_FDS];
	int ret;

	for (;;) {
		missed_retry(c);
		ret = client_recv(c, &m, fds);
		if (ret == -EAGAIN || (ret == -ENOMEM && kernel_wait(c)))
			continue;
		if (ret && ret != -EMFILE)
			return ret;
		on_message(c, &m, fds, ret);
	}
}

static void *control_thread(void *arg)
{
	struct fabric_client *c = arg;
	int ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	ret = control_hear(c);
	if (!client_calls_end(c)) {
		trace(fabric, lost, trace_errno(ret));
		log_info("the fabric daemon is gone (%s)", strerror(-ret));
		(void)client_shutdown(c);
		c->survivor = hidden_keep(rundir_survive(c->dir));
		c->ops.lost(c->ops.user);
		clean_up(c->dir, rundir_clear);
	}
	return NULL;
}

int client_control_start(struct fabric_client *c)
{
	const struct own_thread_attr attr = {
		.name = OWN_THREAD_CONTROL,
		.stack_bytes = CONTROL_STACK_BYTES,
	};

	return own_thread_start(&c->thread, &attr, control_thread, c);
}

void client_control_stop(struct fabric_client *c)
{
	bool lost = client_closing_begin(c);

	/* A system call that waits on the socket keeps it open.  Cancellation is for this case
	 * only, because address sanitizers take the unwinding of a stack for its misuse. */
	if (!client_shutdown(c))
		pthread_cancel(c->thread);
	pthread_join(c->thread, NULL);
	hidden_close(&c->sock);
	hidden_close(&c->survivor);
	if (lost)
		clean_up(c->dir, rundir_remove);
}

void fabric_client_forget(struct fabric_client *c)
{
	/* Descriptors that the child inherited may lie in mappings, so it closes these.  A
	 * shutdown would hit the parent's connection. */
	hidden_close(&c->sock);
	hidden_close(&c->survivor);
}
