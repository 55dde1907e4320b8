// SPDX-License-Identifier: BSD-2-Clause
/* Why a fabric cannot be had, in words; see trouble.h. */
#include "fabric/client/trouble.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "fabric/protocol.h"
#include "fabric/rundir.h"

/* Gives the part of 'dir' that ends before the last 'up' components. */
static bool path_above(const char *dir, unsigned up, char *out, size_t size)
{
	size_t n = strlen(dir);

	for (; up; up--) {
		while (n && dir[n - 1] != '/')
			n--;
		while (n > 1 && dir[n - 1] == '/')
			n--;
	}
	if (!n || n >= size)
		return false;
	memcpy(out, dir, n);
	out[n] = '\0';
	return true;
}

/* Tells whether the fabric's directory, or the one of all fabrics, is not the user's own. */
static bool directory_is_foreign(const char *dir, char *buf, size_t size)
{
	for (unsigned up = 2; up--;) {
		char path[PATH_MAX];
		struct stat st;

		if (!path_above(dir, up, path, sizeof(path)) || lstat(path, &st))
			continue;
		if (!S_ISDIR(st.st_mode)) {
			snprintf(buf, size, "%s is not a directory; remove it", path);
			return true;
		}
		if (st.st_uid != geteuid() && (st.st_uid || !up)) {
			snprintf(buf, size,
				 "%s belongs to user %u, and this is user %u; %s, or set "
				 "XDG_RUNTIME_DIR to a directory of its own",
				 path, (unsigned)st.st_uid, (unsigned)geteuid(),
				 rundir_is_named_ours(dir) ? "have it removed (its name is that of "
							     "this user's fabrics)"
							   : "start 'softhca run' as that user");
			return true;
		}
		if (st.st_mode & (up ? S_IWGRP | S_IWOTH : 077) && !(up && st.st_mode & S_ISVTX)) {
			snprintf(buf, size, "%s is open to others (mode %o); chmod 700 it", path,
				 st.st_mode & 07777);
			return true;
		}
	}
	return false;
}

/* Tells whether the directory in which all of it should lie cannot be used. */
static bool base_is_closed(const struct trouble *t, char *buf, size_t size)
{
	char base[PATH_MAX];

	if (!path_above(t->dir, 2, base, sizeof(base)))
		return false;
	if (t->error == -EACCES && !access(base, X_OK) && !access(t->dir, F_OK))
		return false;
	if (!access(base, W_OK | X_OK))
		return false;
	snprintf(buf, size,
		 "%s: %s; start 'softhca run' as this user (%u), with XDG_RUNTIME_DIR a directory "
		 "of its own that can be written",
		 base, strerror(errno), (unsigned)geteuid());
	return true;
}

static bool daemon_is_missing(const struct trouble *t, char *buf, size_t size)
{
	if (!t->daemon || !t->daemon[0] || !access(t->daemon, X_OK))
		return false;
	snprintf(buf, size,
		 "softhcad cannot be started from %s: %s; SOFTHCA_DAEMON names it, 'softhca run' "
		 "and 'softhca env' set that",
		 t->daemon, strerror(errno));
	return true;
}

static void descriptors_text(char *buf, size_t size)
{
	struct rlimit lim = {0};

	(void)getrlimit(RLIMIT_NOFILE, &lim);
	snprintf(buf, size, "too few file descriptors: the limit is %lu (ulimit -n)",
		 (unsigned long)lim.rlim_cur);
}

void trouble_error_text(int error, char *buf, size_t size)
{
	struct rlimit lim = {RLIM_INFINITY, RLIM_INFINITY};

	/* A thread for whose stack there are no addresses is refused with EAGAIN. */
	if (error == -ENOMEM || error == -EAGAIN)
		(void)getrlimit(RLIMIT_AS, &lim);
	if (lim.rlim_cur == RLIM_INFINITY)
		snprintf(buf, size, "%s", strerror(-error));
	else
		snprintf(buf, size,
			 "%s; the address space is limited to %lu MiB (ulimit -v), and a device "
			 "takes 150 MiB of it, each further one 65 MiB, and the fabric's daemon, "
			 "if the program starts it, 400 MiB or more",
			 strerror(-error), (unsigned long)(lim.rlim_cur >> 20));
}

/* Which version the daemon has that refused us for its version; asks it once more. */
static const char *daemon_version(const char *dir)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock = link_open(dir, NULL, &m, MSG_INFO, fds);

	if (sock >= 0) {
		msg_close_fds(fds);
		close(sock);
	}
	/* The messages are the same, and what they hand over is not. */
	if (sock != -EPROTO || m.head.version == MSG_VERSION)
		return "another";
	return m.head.version < MSG_VERSION ? "an older" : "a newer";
}

static void trouble_by_number(const struct trouble *t, char *buf, size_t size)
{
	char error[TROUBLE_BYTES / 2];

	switch (t->error) {
	case -EMFILE:
		descriptors_text(buf, size);
		break;
	case -ENOENT:
	case -ENODEV:
		snprintf(buf, size,
			 "the fabric in %s has no host '%s'; 'softhca devices' lists its hosts",
			 t->dir, t->host ? t->host : "");
		break;
	case -ECONNREFUSED:
		snprintf(buf, size, "no fabric runs in %s, and nothing says how to start one",
			 t->dir);
		break;
	case -EPROTO:
		snprintf(buf, size,
			 "the fabric in %s is served by a softhcad of %s version; use the softhca "
			 "that it came with, or take it down: softhca fabric down --fabric %s",
			 t->dir, daemon_version(t->dir), text_file_name(t->dir));
		break;
	case -ETIMEDOUT:
		snprintf(buf, size, "the daemon of the fabric in %s does not answer", t->dir);
		break;
	case -EPERM:
	case -ENOSYS:
		snprintf(buf, size,
			 "the system refuses what softhca needs (%s); a filter of system calls, "
			 "as containers have them, must allow clone, clone3, memfd_create and "
			 "Unix sockets",
			 strerror(-t->error));
		break;
	default:
		trouble_error_text(t->error, error, sizeof(error));
		snprintf(buf, size, "the fabric in %s: %s", t->dir, error);
	}
}

void trouble_text(const struct trouble *t, char *buf, size_t size)
{
	/* An error that only names a number is left to that number. */
	if (t->error != -EMFILE && t->error != -ETIMEDOUT && t->error != -EPROTO &&
	    (directory_is_foreign(t->dir, buf, size) || daemon_is_missing(t, buf, size)))
		return;
	if ((t->error == -EACCES || t->error == -EROFS || t->error == -ENOSPC) &&
	    base_is_closed(t, buf, size))
		return;
	trouble_by_number(t, buf, size);
}
