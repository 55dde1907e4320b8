// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process's end of its connection: opening, closing, and requests to the daemon.  When the
 * connection has ended, calls fail at once.
 */
#include "fabric/client/client.h"

#include "base/descriptor.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/trace.h"
#include "fabric/attr.h"
#include "fabric/client/connection.h"
#include "fabric/client/link.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Requests that need no open client: live attributes, and a lease that holds the daemon. */

/* Tells whether the daemon that gave the lease has gone.  The next daemon does not know the lease
 * and has no tree for us. */
static bool lease_ended(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;

/* In a forked child, a thread of the parent that is not there may hold the lock. */
static void hold_lock_renew(void)
{
	pthread_mutex_init(&hold_lock, NULL);
}

static void hold_lock_register(void)
{
	pthread_atfork(NULL, NULL, hold_lock_renew);
}

/*
 * Under `softhca env` only users hold the daemon, so a program that looks at the device tree holds
 * it for the program's lifetime.
 */
static int hold_fabric(const struct fabric_environment *env)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static struct hidden lease = HIDDEN_NONE;
	static pid_t owner;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock = 0;

	memcpy(m.lease.host, env->host, sizeof(m.lease.host));
	pthread_once(&once, hold_lock_register);
	pthread_mutex_lock(&hold_lock);
	if (hidden_ours(&lease) && owner == getpid() && lease_ended(lease.fd))
		hidden_close(&lease);
	/* A child does not keep its parent's lease. */
	if (owner != getpid())
		hidden_close(&lease);
	if (!hidden_ours(&lease) || owner != getpid()) {
		sock = link_open(env->dir, env->daemon[0] ? env->daemon : NULL, &m, MSG_LEASE, fds);
		if (sock >= 0) {
			lease = hidden_keep(sock);
			owner = getpid();
		}
	}
	pthread_mutex_unlock(&hold_lock);
	return sock < 0 ? sock : 0;
}

int fabric_port_counters(uint32_t row, uint64_t totals[PORT_COUNTERS])
{
	const struct fabric_environment *env = fabric_environment();
	int fds[MSG_MAX_FDS];
	struct msg m = {.index.index = row};
	int sock;

	if (!env)
		return -ENODEV;
	sock = link_open(env->dir, NULL, &m, MSG_COUNTERS, fds);
	if (sock < 0)
		return sock;
	close(sock);
	memcpy(totals, m.counters_reply.total, PORT_COUNTERS * sizeof(totals[0]));
	return 0;
}

/*
 * Makes a request about an attribute of this host, which must be a live one.  Results as of
 * link_open.
 */
static int attr_ask(const char *path, enum msg_type type, struct msg *m, int fds[MSG_MAX_FDS])
{
	const struct fabric_environment *env = fabric_environment();
	struct attr attr;
	int sock;

	if (!env)
		return -ENODEV;
	if (!attr_parse(path, &attr) || strlen(path) >= sizeof(m->attr.path))
		return -ENOENT;
	memcpy(m->attr.host, env->host, sizeof(m->attr.host));
	memcpy(m->attr.path, path, strlen(path) + 1);
	sock = link_open(env->dir, NULL, m, type, fds);
	if (sock < 0)
		return sock == -ECONNREFUSED ? -ENODEV : sock;
	close(sock);
	return 0;
}

int fabric_write_attr(const char *path)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int ret = attr_ask(path, MSG_DESCRIBE, &m, fds);

	return ret ? ret : fds[0];
}

ssize_t fabric_read_attr(const char *path, char *buf, size_t size)
{
	const struct fabric_environment *env = fabric_environment();
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int ret;

	if (!env)
		return -ENODEV;
	if (!strcmp(path, "."))
		return hold_fabric(env);
	ret = attr_ask(path, MSG_ATTR, &m, fds);
	if (ret)
		return ret;
	if (m.attr_reply.length > sizeof(m.attr_reply.text))
		return -EBADMSG;
	if (m.attr_reply.length > size)
		return -ENOSPC;
	memcpy(buf, m.attr_reply.text, m.attr_reply.length);
	return (ssize_t)m.attr_reply.length;
}

const struct registry *fabric_registry(const struct fabric_client *c)
{
	return c->segments.registry;
}

const struct subnet *fabric_subnet(const struct fabric_client *c)
{
	return &c->segments.subnet;
}

struct slot *fabric_slots(const struct fabric_client *c)
{
	return c->segments.slots;
}

struct traffic *fabric_traffic(const struct fabric_client *c)
{
	return c->segments.traffic;
}

uint16_t fabric_slot(const struct fabric_client *c)
{
	return c->segments.slot;
}

uint32_t fabric_host_ports(const struct fabric_client *c, uint32_t *rows, uint32_t max)
{
	for (uint32_t i = 0; i < c->segments.nports && i < max; i++)
		rows[i] = c->segments.rows[i];
	return c->segments.nports;
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

int fabric_open_function(struct fabric_client *c, uint32_t device, int *fd)
{
	struct msg m = {.index.index = device};
	int fds[MSG_MAX_FDS];
	int ret = client_call(c, &m, MSG_FUNCTION, fds);

	if (!ret)
		*fd = fds[0];
	return ret;
}

void fabric_tell_violation(struct fabric_client *c, const struct key_violation *v)
{
	struct msg m = {.violated.violation = *v};

	no_cancellation();
	msg_prepare(&m, MSG_VIOLATED, MSG_REQUEST, 1, 0);
	if (client_send(c, &m, MSG_DONTWAIT))
		log_debug("cannot tell of a bad key");
}

bool fabric_send_gsi(struct fabric_client *c, const struct gsi_datagram *d)
{
	struct msg m = {.gsi.datagram = *d};

	no_cancellation();
	msg_prepare(&m, MSG_GSI, MSG_REQUEST, 1, 0);
	return !client_send(c, &m, MSG_DONTWAIT);
}

void fabric_tell_group(struct fabric_client *c, uint32_t row, const union ib_gid *gid, bool joins)
{
	struct msg m = {.group = {.row = row, .joins = joins, .gid = *gid}};

	no_cancellation();
	msg_prepare(&m, MSG_GROUP, MSG_REQUEST, 1, 0);
	if (client_send(c, &m, 0))
		log_debug("cannot tell of a group");
}

int fabric_carry(struct fabric_client *c, const struct msg_tie *tie)
{
	struct msg m = {.tie = *tie};
	int fds[MSG_MAX_FDS];

	m.tie.peer = SUBNET_NONE;
	return client_call(c, &m, MSG_TIE, fds);
}

int fabric_client_open_in(const struct fabric_environment *env, const struct fabric_client_ops *ops,
			  struct fabric_client **out)
{
	struct timeval forever = {0};
	struct fabric_client *c;
	struct msg m = {0};
	int fds[MSG_MAX_FDS];
	int ret;

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
	c->survivor = HIDDEN_NONE;
	setsockopt(c->sock.fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	ret = client_segments_map(&c->segments, &m.hello_reply, fds);
	msg_close_fds(fds);
	if (ret)
		goto close_sock;

	client_calls_open(c);
	ret = client_control_start(c);
	if (ret)
		goto close_calls;
	trace(fabric, joined, c->segments.slot, c->segments.nports);
	*out = c;
	return 0;

close_calls:
	client_calls_close(c);
	client_segments_unmap(&c->segments);
close_sock:
	hidden_close(&c->sock);
free_client:
	free(c);
	return ret;
}

int fabric_client_open(const struct fabric_client_ops *ops, struct fabric_client **out)
{
	const struct fabric_environment *env = fabric_environment();

	return env ? fabric_client_open_in(env, ops, out) : -ENODEV;
}

void fabric_client_close(struct fabric_client *c)
{
	client_control_stop(c);
	client_segments_unmap(&c->segments);
	client_calls_close(c);
	free(c);
}
