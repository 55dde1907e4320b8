// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests and their replies.  A thread that asks waits on its own stack until the control thread
 * hands it the reply.  When the connection ends, all of them get -ECONNRESET.
 */
#include "fabric/client/connection.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

#include "base/trace.h"

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

bool client_calls_end(struct fabric_client *c)
{
	bool closing;

	pthread_mutex_lock(&c->lock);
	c->lost = true;
	closing = c->closing;
	pthread_cond_broadcast(&c->answered);
	pthread_mutex_unlock(&c->lock);
	return closing;
}

bool client_closing_begin(struct fabric_client *c)
{
	bool lost;

	pthread_mutex_lock(&c->lock);
	c->closing = true;
	lost = c->lost;
	pthread_mutex_unlock(&c->lock);
	return lost;
}

bool client_is_closing(struct fabric_client *c)
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

int client_recv(struct fabric_client *c, struct msg *m, int fds[MSG_MAX_FDS])
{
	int ret;

	if (!hidden_ours(&c->sock))
		return -ECONNRESET;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	ret = msg_recv(c->sock.fd, m, fds, 1u << MSG_REPLY | 1u << MSG_NOTE, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return ret;
}

bool client_shutdown(struct fabric_client *c)
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

bool client_answer(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS], int error)
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
