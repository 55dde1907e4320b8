// SPDX-License-Identifier: BSD-2-Clause
/* Notices that the run-time directory has gone; see home.h. */
#include "fabric/daemon/home.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "fabric/rundir.h"

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

int home_watch(const char *dir)
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

bool home_has_gone(int watch, const char *dir, int lock)
{
	char events[1024];

	while (read(watch, events, sizeof(events)) > 0)
		;
	return !rundir_lock_stands(dir, lock);
}
