// SPDX-License-Identifier: BSD-2-Clause
/* Connecting to softhcad; see link.h. */
#include "fabric/client/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/rundir.h"
#include "fabric/client/start.h"

#define HIGH_FD 200

/* Kinds of messages that the daemon sends, also in answer to a stranger. */
#define REPLIES (1u << MSG_REPLY | 1u << MSG_NOTE)

int link_raise(int fd)
{
	struct rlimit lim;
	int want = HIGH_FD;
	int high;

	if (!getrlimit(RLIMIT_NOFILE, &lim) && lim.rlim_cur <= HIGH_FD)
		want = (int)(lim.rlim_cur / 2);
	high = fcntl(fd, F_DUPFD, want);
	if (high < 0) {
		fcntl(fd, F_SETFD, 0);
		return fd;
	}
	close(fd);
	return high;
}

static int sock_connect(const char *dir)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = FABRIC_TIMEOUT_MS / 1000};
	int sock, ret;

	if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir) >=
	    (int)sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	/* A daemon that is stopped must not stop us: connect and replies have a time limit. */
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	do {
		ret = connect(sock, (struct sockaddr *)&addr, sizeof(addr));
	} while (ret && errno == EINTR);
	if (ret) {
		ret = errno == ENOENT ? -ECONNREFUSED : -errno;
		close(sock);
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	}
	return sock;
}

int link_call(int sock, struct msg *m, enum msg_type type, int fds[MSG_MAX_FDS])
{
	int ret;

	msg_prepare(m, type, MSG_REQUEST, 1, 0);
	ret = msg_send(sock, m, NULL, 0, 0);
	/* Reads in any case, because the daemon may have said why and closed before we sent. */
	if (ret && ret != -ECONNRESET)
		return ret;
	ret = msg_recv(sock, m, fds, REPLIES, 0);
	if (ret)
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	if (m->head.status)
		return m->head.status;
	if (msg_kind(m) != MSG_REPLY || m->head.type != type) {
		msg_close_fds(fds);
		return -EBADMSG;
	}
	return 0;
}

int link_open(const char *dir, const char *daemon, struct msg *m, enum msg_type type,
	      int fds[MSG_MAX_FDS])
{
	uint64_t deadline = clock_ns() + FABRIC_TIMEOUT_MS * 1000000ull;
	const struct timespec nap = {.tv_nsec = 1000000};
	const struct msg request = *m;
	int sock, ret;

	do {
		sock = sock_connect(dir);
		/*
		 * A daemon is coming up or leaving, and will serve or be gone in a moment.  Another
		 * one would only find that out, and twenty programs that start at once would start
		 * twenty.
		 */
		if (sock == -ECONNREFUSED && rundir_is_locked(dir)) {
			nanosleep(&nap, NULL);
			continue;
		}
		if (sock == -ECONNREFUSED && daemon) {
			ret = fabric_start(daemon, dir);
			if (ret)
				return ret;
			continue;
		}
		if (sock < 0)
			return sock;
		*m = request;
		ret = link_call(sock, m, type, fds);
		if (!ret)
			return sock;
		close(sock);
		/* The connection closed without an answer: the daemon was leaving when we
		 * connected.  Tries once more. */
		if (ret != -ECONNRESET)
			return ret;
	} while (clock_ns() < deadline);
	return -ETIMEDOUT;
}
