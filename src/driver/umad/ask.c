// SPDX-License-Identifier: BSD-2-Clause
/* Requests of umad and issm files to the daemon, each on a connection of its own: that costs less
 * than a second descriptor for the life of each file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "driver/umad/device.h"
#include "fabric/client/link.h"

void umad_request_fill(struct msg *m, const char *name, bool wait)
{
	const struct fabric_environment *env = fabric_environment();

	memset(&m->umad_open, 0, sizeof(m->umad_open));
	if (env)
		memcpy(m->umad_open.host, env->host, sizeof(m->umad_open.host));
	/* A longer one names no file. */
	memcpy(m->umad_open.name, name, strnlen(name, sizeof(m->umad_open.name) - 1));
	m->umad_open.wait = wait;
}

int umad_request_error(int ret)
{
	switch (ret) {
	case -ENOBUFS:
		return -ENOMEM;
	case -ETIMEDOUT:
	case -ECONNRESET:
	case -EPIPE:
	case -EBADMSG:
	case -EPROTO:
		return -EIO;
	default:
		return ret;
	}
}

static int daemon_open(struct msg *m, enum msg_type type, int fds[MSG_MAX_FDS])
{
	const struct fabric_environment *env = fabric_environment();
	int sock;

	if (!env)
		return -ENODEV;
	sock = link_open(env->dir, env->daemon[0] ? env->daemon : NULL, m, type, fds);
	return sock == -ECONNREFUSED ? -ENXIO : umad_request_error(sock);
}

int umad_link_open(const char *name, bool wait, enum msg_type type, struct msg *m,
		   int fds[MSG_MAX_FDS])
{
	umad_request_fill(m, name, wait);
	return daemon_open(m, type, fds);
}

int umad_adopt_open(struct msg *m, int fds[MSG_MAX_FDS])
{
	const struct fabric_environment *env = fabric_environment();

	return env ? link_open(env->dir, NULL, m, MSG_UMAD_ADOPT, fds) : -ENODEV;
}

int umad_lease_open(struct msg *m, int fds[MSG_MAX_FDS])
{
	const struct fabric_environment *env = fabric_environment();

	if (env)
		memcpy(m->lease.host, env->host, sizeof(m->lease.host));
	return daemon_open(m, MSG_LEASE, fds);
}

int umad_ask(struct umad_device *u, struct msg *m, enum msg_type type, int fds[MSG_MAX_FDS])
{
	const struct fabric_environment *env = fabric_environment();
	int none[MSG_MAX_FDS], sock;

	if (!env || umad_is_gone(u))
		return -EIO;
	sock = link_open(env->dir, NULL, m, type, fds ? fds : none);
	if (sock == -ECONNREFUSED || sock == -ESTALE) {
		atomic_store_explicit(&u->page->gone, 1, memory_order_release);
		return -EIO;
	}
	if (sock < 0)
		return umad_request_error(sock);
	close(sock);
	return 0;
}
