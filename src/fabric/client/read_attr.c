// SPDX-License-Identifier: BSD-2-Clause
/* Requests that need no open client: live attributes, and a lease that holds the daemon. */
#include "fabric/client/client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "fabric/attr.h"
#include "fabric/client/environment.h"
#include "fabric/client/link.h"

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
