// SPDX-License-Identifier: BSD-2-Clause
/* The run-time directory and its lock; see rundir.h. */
#include "fabric/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/protocol.h"

#define PARENT_PREFIX	  "softhca-"
#define RUNDIR_NAME_BYTES 32u

/*
 * Gives the ID by which the parent of this user namespace knows the user.  False where it is the
 * same, as in the initial namespace and under `softhca run --view=mount`, and where the map cannot
 * be read.
 */
static bool uid_outside(unsigned uid, unsigned *out)
{
	unsigned inside, outside, count;
	FILE *map = fopen("/proc/self/uid_map", "re");
	bool found = false;

	*out = uid;
	while (map && !found && fscanf(map, "%u %u %u", &inside, &outside, &count) == 3) {
		found = uid >= inside && uid - inside < count;
		*out = outside + (uid - inside);
	}
	if (map)
		fclose(map);
	return found && *out != uid;
}

/*
 * User namespaces may share /tmp and yet not their user IDs: "softhca-0" would be the directory of
 * root in each of them.  So the name has the ID outside too, where there is one.
 */
static void parent_name(char buf[static RUNDIR_NAME_BYTES])
{
	unsigned uid = geteuid(), outside;

	if (uid_outside(uid, &outside))
		snprintf(buf, RUNDIR_NAME_BYTES, PARENT_PREFIX "%u-%u", uid, outside);
	else
		snprintf(buf, RUNDIR_NAME_BYTES, PARENT_PREFIX "%u", uid);
}

int rundir_path(const char *fabric, char *buf, size_t size)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	char parent[RUNDIR_NAME_BYTES];
	int n;

	if (!fabric_name_ok(fabric))
		return -EINVAL;
	if (!base || base[0] != '/' || access(base, W_OK | X_OK))
		base = "/tmp";
	parent_name(parent);
	n = snprintf(buf, size, "%s/%s/%s", base, parent, fabric);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int parent_of(const char *dir, char *buf, size_t size)
{
	const char *slash = strrchr(dir, '/');
	size_t n;

	if (dir[0] != '/')
		return -EINVAL;
	n = (size_t)(slash - dir);
	/* directly below the root, whose slash stays */
	if (!n)
		n = 1;
	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(buf, dir, n);
	buf[n] = '\0';
	return 0;
}

/*
 * A parent is safe if only we and root can replace what is in it.  In /tmp the name alone proves
 * nothing: a stranger may have made "softhca-<our uid>" before us.
 */
static int parent_check(const char *parent)
{
	struct stat st;

	if (lstat(parent, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return -EPERM;
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
		return -EPERM;
	return 0;
}

static int dir_check(const char *dir)
{
	struct stat st;

	if (lstat(dir, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid != geteuid() || (st.st_mode & 077) ? -EPERM : 0;
}

int rundir_make(const char *dir)
{
	char parent[RUNDIR_BYTES];
	int ret = parent_of(dir, parent, sizeof(parent));

	if (ret)
		return ret;
	/* A leaving daemon may remove the parent between the two calls. */
	for (int attempt = 0; attempt < 100; attempt++) {
		int made = mkdir(parent, 0700) ? -errno : 0;

		/* Where we cannot make a directory, it may be there all the same. */
		if (made && made != -EEXIST && made != -EROFS && made != -EACCES)
			return made;
		ret = parent_check(parent);
		if (ret == -ENOENT && made && made != -EEXIST)
			return made;
		if (ret == -ENOENT)
			continue;
		if (ret)
			return ret;
		if (mkdir(dir, 0700) && errno != EEXIST && errno != ENOENT)
			return -errno;
		ret = dir_check(dir);
		if (ret != -ENOENT)
			return ret;
	}
	return -ENOENT;
}

static bool lock_path(const char *dir, char path[static RUNDIR_BYTES + 8])
{
	return snprintf(path, RUNDIR_BYTES + 8, "%s/lock", dir) < (int)RUNDIR_BYTES + 8;
}

bool rundir_lock_stands(const char *dir, int lock)
{
	char path[RUNDIR_BYTES + 8];
	struct stat mine, named;

	return lock_path(dir, path) && !fstat(lock, &mine) && !lstat(path, &named) &&
	       mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

int rundir_lock(const char *dir, bool create)
{
	char path[RUNDIR_BYTES + 8];
	int fd;

	if (!lock_path(dir, path))
		return -ENAMETOOLONG;
	for (;;) {
		fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			int err = errno;

			close(fd);
			return -err;
		}
		/* The owner before us may have unlinked the file after we opened it: then we hold a
		 * lock on a file that nobody else will ever find. */
		if (rundir_lock_stands(dir, fd))
			return fd;
		close(fd);
	}
}

/* ---- programs of a daemon that has gone ---- */

#define SURVIVOR_ATTEMPTS 8

/* Locks what the parent lies in, which stays while run-time directories come and go. */
static int base_lock(const char *dir, int how)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	char parent[RUNDIR_BYTES], base[RUNDIR_BYTES];
	int fd, ret;

	ret = parent_of(dir, parent, sizeof(parent));
	if (!ret)
		ret = parent_of(parent, base, sizeof(base));
	if (ret)
		return ret;
	fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* A daemon that starts has the lock for a moment. */
	for (int i = 0; i < SURVIVOR_ATTEMPTS; i++) {
		if (!flock(fd, how | LOCK_NB))
			return fd;
		ret = -errno;
		nanosleep(&nap, NULL);
	}
	close(fd);
	return ret;
}

int rundir_survive(const char *dir)
{
	return base_lock(dir, LOCK_SH);
}

bool rundir_has_survivors(const char *dir)
{
	int fd = base_lock(dir, LOCK_EX);

	if (fd >= 0)
		close(fd);
	return fd == -EWOULDBLOCK;
}

int rundir_check(const char *dir)
{
	char parent[RUNDIR_BYTES];
	int ret = parent_of(dir, parent, sizeof(parent));

	if (!ret)
		ret = parent_check(parent);
	return ret ? ret : dir_check(dir);
}

bool rundir_is_named_ours(const char *dir)
{
	char parent[RUNDIR_BYTES], name[RUNDIR_NAME_BYTES];

	parent_name(name);
	return !parent_of(dir, parent, sizeof(parent)) && strrchr(parent, '/') &&
	       !strcmp(strrchr(parent, '/') + 1, name);
}

bool rundir_is_locked(const char *dir)
{
	int lock;

	if (rundir_check(dir))
		return false;
	lock = rundir_lock(dir, false);
	if (lock >= 0)
		close(lock);
	return lock == -EAGAIN;
}

static bool same_file_system(int fd, int other)
{
	struct stat a, b;

	return !fstat(fd, &a) && !fstat(other, &b) && a.st_dev == b.st_dev;
}

/*
 * Takes fd over.  It never follows a symbolic link or enters another file system, as it may run with
 * the rights of root; depth bounds what a hostile tree could cost.
 */
static void remove_below(int fd, unsigned depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;

	if (!d) {
		close(fd);
		return;
	}
	while ((e = readdir(d))) {
		if (text_is_dots(e->d_name))
			continue;
		if (e->d_type != DT_DIR && !unlinkat(fd, e->d_name, 0))
			continue;
		if (depth) {
			int sub = openat(fd, e->d_name,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (sub >= 0 && same_file_system(fd, sub))
				remove_below(sub, depth - 1);
			else if (sub >= 0)
				close(sub);
		}
		unlinkat(fd, e->d_name, AT_REMOVEDIR);
	}
	closedir(d);
}

#define TREE_DEPTH 16

void rundir_remove_tree(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		remove_below(fd, TREE_DEPTH);
	rmdir(path);
}

void rundir_clear(const char *dir)
{
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int hosts;

	if (at < 0)
		return;
	unlinkat(at, "sock", 0);
	unlinkat(at, "log", 0);
	hosts = openat(at, "hosts", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (hosts >= 0)
		remove_below(hosts, TREE_DEPTH);
	unlinkat(at, "hosts", AT_REMOVEDIR);
	close(at);
}

void rundir_abandon(const char *dir)
{
	char parent[RUNDIR_BYTES];
	const char *name;

	rmdir(dir);
	if (parent_of(dir, parent, sizeof(parent)))
		return;
	name = strrchr(parent, '/');
	if (name && !strncmp(name + 1, PARENT_PREFIX, strlen(PARENT_PREFIX)))
		rmdir(parent);
}

void rundir_remove(const char *dir)
{
	char path[RUNDIR_BYTES + 8];

	rundir_clear(dir);
	/* The lock goes last, so that a starter that comes now finds either it or nothing. */
	if (!lock_path(dir, path))
		return;
	unlink(path);
	rundir_abandon(dir);
}
