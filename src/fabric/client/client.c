// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process's end of its connection.  One thread, the control thread, reads everything that the
 * daemon sends: it hands replies to the threads that wait for them, and notifications to the
 * upcalls.  When the connection ends, all waiters get -ECONNRESET and later calls fail at once.
 */
#include "fabric/client/client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/hidden.h"
#include "base/log.h"
#include "base/trace.h"
#include "fabric/client/environment.h"
#include "fabric/client/link.h"
#include "fabric/rundir.h"

/* The program's static TLS takes its room from this stack too. */
#define CONTROL_STACK_BYTES (256u << 10)
#define REMAINS_ATTEMPTS    25

/* How often we ask again for channels that we had no descriptor for, and the number of those
 * requests. */
#define MISSED_RETRY_MS 50
#define MISSED_SEQ	UINT32_MAX

/* Held while a control thread does more than wait for a message.  It is not part of the client,
 * because whoever takes it may replace the pages that the client lies in. */
static pthread_mutex_t hearing = PTHREAD_MUTEX_INITIALIZER;

/* A thread that waits for a reply; lives on its stack. */
struct waiter {
	struct waiter *next;
	struct msg *m; /* request, then reply */
	int fds[MSG_MAX_FDS];
	uint32_t seq;
	int result;
	bool done;
};

struct fabric_client {
	struct hidden sock;
	uint16_t slot;
	uint32_t nports;
	uint32_t rows[SLOT_PORTS];
	const struct registry *registry;
	struct subnet subnet;
	size_t subnet_bytes;
	struct slot *slots;
	size_t slots_bytes;
	struct fabric_client_ops ops;
	pthread_t thread;
	char dir[RUNDIR_BYTES];

	/* Peers whose channels came when we had no descriptor left; the control thread's. */
	uint64_t missed[REGISTRY_SLOTS / 64];
	uint32_t nmissed;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t answered;
	struct waiter *waiters;
	uint32_t seq;
	bool lost;
	bool closing;
};

const struct registry *fabric_registry(const struct fabric_client *c)
{
	return c->registry;
}

const struct subnet *fabric_subnet(const struct fabric_client *c)
{
	return &c->subnet;
}

struct slot *fabric_slots(const struct fabric_client *c)
{
	return c->slots;
}

uint16_t fabric_slot(const struct fabric_client *c)
{
	return c->slot;
}

uint32_t fabric_host_ports(const struct fabric_client *c, uint32_t *rows, uint32_t max)
{
	for (uint32_t i = 0; i < c->nports && i < max; i++)
		rows[i] = c->rows[i];
	return c->nports;
}

/* ---- the connection; the program may have closed it ---- */

static int client_send(struct fabric_client *c, const struct msg *m, int flags)
{
	return hidden_ours(&c->sock) ? msg_send(c->sock.fd, m, NULL, 0, flags) : -ECONNRESET;
}

/* The control thread may be cancelled in this wait only. */
static int client_recv(struct fabric_client *c, struct msg *m, int fds[MSG_MAX_FDS])
{
	int ret;

	if (!hidden_ours(&c->sock))
		return -ECONNRESET;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	ret = msg_recv(c->sock.fd, m, fds, 1u << MSG_REPLY | 1u << MSG_NOTE, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return ret;
}

/* False: the descriptor has gone, and whoever waits in a system call on the socket waits on. */
static bool client_shutdown(struct fabric_client *c)
{
	return hidden_ours(&c->sock) && !shutdown(c->sock.fd, SHUT_RDWR);
}

/* ---- requests ---- */

static int wait_answer(struct fabric_client *c, struct waiter *w)
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

static int client_call(struct fabric_client *c, struct msg *m, enum msg_type type,
		       int fds[MSG_MAX_FDS])
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
	if (++c->seq == MISSED_SEQ)
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
	ret = wait_answer(c, &w);
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

int64_t fabric_number_chunk(struct fabric_client *c, enum number_kind kind)
{
	struct msg m = {.numbers.kind = kind};
	int fds[MSG_MAX_FDS];
	int ret = client_call(c, &m, MSG_NUMBERS, fds);

	return ret ? ret : (int64_t)m.numbers_reply.first;
}

int fabric_open_channel(struct fabric_client *c, uint16_t peer, int *fd, size_t *bytes, int *side)
{
	struct msg m = {.peer.peer = peer};
	int fds[MSG_MAX_FDS];
	int ret = client_call(c, &m, MSG_CHANNEL, fds);

	if (ret)
		return ret;
	*fd = fds[0];
	*bytes = m.channel.bytes;
	*side = (int)m.channel.side;
	return 0;
}

/* ---- the control thread: channels that could not be taken ---- */

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
		msg_prepare(&m, MSG_CHANNEL, MSG_REQUEST, MISSED_SEQ, 0);
		if (client_send(c, &m, MSG_DONTWAIT))
			return;
	}
}

/* Waits for a message; meanwhile asks again for what was missed. */
static void missed_retry(struct fabric_client *c)
{
	struct pollfd p = {.fd = c->sock.fd, .events = POLLIN};

	while (c->nmissed && hidden_ours(&c->sock) && poll(&p, 1, MISSED_RETRY_MS) <= 0) {
		usleep(1000); /* poll may have failed at once */
		missed_ask(c);
	}
}

/* The channel comes by a notification, or by an answer that nobody takes.  If the program has used
 * up its descriptors we ask again later, and the daemon keeps the channel. */
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

/* error: why there are no descriptors, or 0.  False: nobody waits any more (timed out). */
static bool waiter_wake(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS],
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

/*
 * If nobody here takes a new channel, it exists nevertheless, and the peer knows of it and may use
 * it.  So we treat it as if the peer had opened it.
 */
static void on_reply(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS], int error)
{
	bool taken = m->head.seq != MISSED_SEQ && waiter_wake(c, m, fds, error);

	if (m->head.type == MSG_CHANNEL && !m->head.status && (!taken || error))
		on_channel(c, m, fds);
	msg_close_fds(fds);
}

/* ---- the rest of what it hears ---- */

static void on_gone(struct fabric_client *c, uint16_t peer)
{
	struct msg ack = {.peer.peer = peer};

	missed_set(c, peer, false);
	c->ops.gone(c->ops.user, peer);
	/* Only now may the daemon give that slot to somebody else.  No reply comes. */
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
	case MSG_PORT:
		if (m->port.row < c->subnet.nports) {
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

/*
 * A daemon that was killed leaves its directory, and whoever gets the lock first cleans up.  The
 * kernel may close the daemon's socket a moment before it drops the lock; a lock that stays belongs
 * to a new daemon.
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

static void on_message(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS],
		       int error)
{
	if (msg_kind(m) != MSG_REPLY)
		on_note(c, m, fds);
	else
		on_reply(c, m, fds, error);
}

void fabric_client_pause(void)
{
	pthread_mutex_lock(&hearing);
}

void fabric_client_resume(void)
{
	pthread_mutex_unlock(&hearing);
}

/* Waits a moment for the kernel to have again what it wants.  False: the connection is closing. */
static bool kernel_wait(struct fabric_client *c)
{
	const struct timespec nap = {.tv_nsec = 5000000};
	bool closing;

	nanosleep(&nap, NULL);
	pthread_mutex_lock(&c->lock);
	closing = c->closing;
	pthread_mutex_unlock(&c->lock);
	return !closing;
}

/* Hears messages until the connection ends; returns why. */
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
		pthread_mutex_lock(&hearing);
		on_message(c, &m, fds, ret);
		pthread_mutex_unlock(&hearing);
	}
}

static void *control_thread(void *arg)
{
	struct fabric_client *c = arg;
	bool closing;
	int ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	ret = control_hear(c);
	pthread_mutex_lock(&hearing);
	pthread_mutex_lock(&c->lock);
	c->lost = true;
	closing = c->closing;
	pthread_cond_broadcast(&c->answered);
	pthread_mutex_unlock(&c->lock);
	if (!closing) {
		trace(fabric, lost, trace_errno(ret));
		log_info("the fabric daemon is gone (%s)", strerror(-ret));
		(void)client_shutdown(c);
		c->ops.lost(c->ops.user);
		clean_up(c->dir, rundir_clear);
	}
	pthread_mutex_unlock(&hearing);
	return NULL;
}

static int thread_start(struct fabric_client *c)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int ret;

	ret = pthread_attr_init(&attr);
	if (ret)
		return -ret;
	pthread_attr_setstacksize(&attr, CONTROL_STACK_BYTES);
	/* The program's signals belong to the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&c->thread, &attr, control_thread, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (!ret)
		pthread_setname_np(c->thread, "softhca-control");
	return -ret;
}

/* ---- open and close ---- */

static int map_segment(int fd, size_t bytes, int protection, void *out)
{
	void *p = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	memcpy(out, &p, sizeof(p));
	return 0;
}

static int map_subnet(struct fabric_client *c, size_t bytes, int fd)
{
	void *p = NULL;
	int ret = map_segment(fd, bytes, PROT_READ, &p);

	if (ret)
		return ret;
	ret = subnet_attach(&c->subnet, p, bytes);
	if (ret) {
		munmap(p, bytes);
		return ret;
	}
	c->subnet_bytes = bytes;
	return 0;
}

static int map_segments(struct fabric_client *c, const struct msg_hello_reply *r, const int *fds)
{
	int ret;

	if (r->nports > SLOT_PORTS || r->slot >= REGISTRY_SLOTS ||
	    r->slots_bytes < REGISTRY_SLOTS * sizeof(struct slot) ||
	    r->registry_bytes != sizeof(struct registry))
		return -EBADMSG;
	ret = map_segment(fds[HELLO_FD_REGISTRY], sizeof(*c->registry), PROT_READ, &c->registry);
	if (ret)
		return ret;
	if (c->registry->magic != REGISTRY_MAGIC || c->registry->version != REGISTRY_VERSION)
		return -EPROTO;
	ret = map_subnet(c, r->subnet_bytes, fds[HELLO_FD_SUBNET]);
	if (ret)
		return ret;
	ret = map_segment(fds[HELLO_FD_SLOTS], r->slots_bytes, PROT_READ | PROT_WRITE, &c->slots);
	if (ret)
		return ret;
	c->slots_bytes = r->slots_bytes;
	c->slot = r->slot;
	c->nports = r->nports;
	for (uint32_t i = 0; i < c->nports; i++) {
		if (r->rows[i] >= c->subnet.nports)
			return -EBADMSG;
		c->rows[i] = r->rows[i];
	}
	return 0;
}

static void unmap_segments(struct fabric_client *c)
{
	if (c->slots)
		munmap(c->slots, c->slots_bytes);
	if (c->subnet.head)
		munmap(c->subnet.head, c->subnet_bytes);
	if (c->registry)
		munmap((void *)(uintptr_t)c->registry, sizeof(*c->registry));
}

int fabric_client_open(const struct fabric_client_ops *ops, struct fabric_client **out)
{
	const struct fabric_environment *env = fabric_environment();
	struct timeval forever = {0};
	struct fabric_client *c;
	pthread_condattr_t attr;
	struct msg m = {0};
	int fds[MSG_MAX_FDS];
	int ret;

	if (!env)
		return -ENODEV;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->ops = *ops;
	memcpy(c->dir, env->dir, sizeof(c->dir));
	memcpy(m.hello.host, env->host, sizeof(m.hello.host));
	ret = link_open(env->dir, env->daemon[0] ? env->daemon : NULL, &m, MSG_HELLO, fds);
	if (ret < 0)
		goto free_client;
	c->sock = hidden_keep(ret);
	setsockopt(c->sock.fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	ret = map_segments(c, &m.hello_reply, fds);
	msg_close_fds(fds);
	if (ret)
		goto close_sock;

	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->answered, &attr);
	pthread_condattr_destroy(&attr);
	ret = thread_start(c);
	if (ret)
		goto destroy_lock;
	trace(fabric, joined, c->slot, c->nports);
	*out = c;
	return 0;

destroy_lock:
	pthread_cond_destroy(&c->answered);
	pthread_mutex_destroy(&c->lock);
close_sock:
	unmap_segments(c);
	hidden_close(&c->sock);
free_client:
	free(c);
	return ret;
}

void fabric_client_close(struct fabric_client *c)
{
	bool lost;

	pthread_mutex_lock(&c->lock);
	c->closing = true;
	lost = c->lost;
	pthread_mutex_unlock(&c->lock);
	/* A system call that waits on the socket keeps it open.  Cancellation is for this case
	 * only, because address sanitizers take the unwinding of a stack for its misuse. */
	if (!client_shutdown(c))
		pthread_cancel(c->thread);
	pthread_join(c->thread, NULL);
	hidden_close(&c->sock);
	if (lost)
		clean_up(c->dir, rundir_remove);
	unmap_segments(c);
	pthread_cond_destroy(&c->answered);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void fabric_client_forget(struct fabric_client *c)
{
	/* What the child inherited may point into mappings; a shutdown would be the parent's. */
	hidden_close(&c->sock);
	/* The control thread, which may hold it, does not exist in the child. */
	hearing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
