// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/client/control.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/trace.h"

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
	if (lost)
		clean_up(c->dir, rundir_remove);
}

void fabric_client_forget(struct fabric_client *c)
{
	/* Descriptors that the child inherited may lie in mappings, so it closes this one.  A
	 * shutdown would hit the parent's connection. */
	hidden_close(&c->sock);
}
