// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a program that posix_spawn starts has open.  The C library opens those files in the child,
 * without us.  So this process opens a file of the tree while it starts the program, and the child gets
 * a duplicate.  The descriptor has its number since the program added the action; a hidden file keeps it
 * until then.
 */
#include "preload/libc.h"

#include "preload/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/descriptor.h"
#include "preload/tree.h"

struct spawn_file {
	struct spawn_file *next;
	const posix_spawn_file_actions_t *actions;
	struct hidden place;
	int open; /* while the program starts; -1: not */
	int flags;
	char path[];
};

/* Held while a program starts that has such files: two threads may start one at a time. */
static pthread_mutex_t spawn_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct spawn_file *) spawn_files;

/* A relative path is the new program's, which may have another directory by then. */
static const char *absolute_map(const char *path, int flags, struct tree_path *t)
{
	t->below = NULL;
	return path && path[0] == '/' ? tree_map(AT_FDCWD, path, flags & O_NOFOLLOW, t) : path;
}

exported int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *restrict actions,
						  const char *restrict path)
{
	struct tree_path t;

	return real(posix_spawn_file_actions_addchdir_np)(actions, absolute_map(path, 0, &t));
}

static int null_open(void)
{
	return (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
}

static int spawn_file_add(posix_spawn_file_actions_t *actions, int fd, const char *path, int flags)
{
	struct spawn_file *f = malloc(sizeof(*f) + strlen(path) + 1);
	int ret = ENOMEM;

	if (!f)
		return ret;
	*f = (struct spawn_file){.actions = actions, .open = -1, .flags = flags | O_CLOEXEC};
	memcpy(f->path, path, strlen(path) + 1);
	f->place = hidden_keep(null_open());
	if (f->place.fd >= 0)
		ret = posix_spawn_file_actions_adddup2(actions, f->place.fd, fd);
	if (ret) {
		hidden_close(&f->place);
		free(f);
		return ret;
	}
	pthread_mutex_lock(&spawn_lock);
	f->next = spawn_files;
	spawn_files = f;
	pthread_mutex_unlock(&spawn_lock);
	return 0;
}

exported int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *restrict actions, int fd,
					      const char *restrict path, int flags, mode_t mode)
{
	struct tree_path t;
	const char *mapped = absolute_map(path, flags, &t);
	int saved_errno = errno, ret;

	if (!t.below || flags & O_DIRECTORY)
		return real(posix_spawn_file_actions_addopen)(actions, fd, mapped, flags, mode);
	ret = spawn_file_add(actions, fd, path, flags);
	errno = saved_errno;
	return ret;
}

exported int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *actions)
{
	struct spawn_file *f, *next, *kept = NULL;

	if (!atomic_load(&spawn_files))
		return real(posix_spawn_file_actions_destroy)(actions);
	pthread_mutex_lock(&spawn_lock);
	for (f = spawn_files; f; f = next) {
		next = f->next;
		if (f->actions != actions) {
			f->next = kept;
			kept = f;
			continue;
		}
		hidden_close(&f->place);
		free(f);
	}
	spawn_files = kept;
	pthread_mutex_unlock(&spawn_lock);
	return real(posix_spawn_file_actions_destroy)(actions);
}

/* ---- while a program starts ---- */

/* Returns 0 or the error of the open. */
static int spawn_file_open(struct spawn_file *f)
{
	f->open = tree_open(AT_FDCWD, f->path, f->flags, 0);
	if (f->open < 0)
		return errno;
	if (hidden_ours(&f->place) &&
	    syscall(SYS_dup3, f->open, f->place.fd, O_CLOEXEC) == f->place.fd)
		return 0;
	close(f->open);
	f->open = -1;
	return EBADF;
}

static void spawn_file_close(struct spawn_file *f)
{
	int null;

	if (f->open < 0)
		return;
	null = null_open();
	if (null >= 0) {
		syscall(SYS_dup3, null, f->place.fd, O_CLOEXEC);
		syscall(SYS_close, null);
	}
	close(f->open);
	f->open = -1;
}

/* A thread that the child does not have may have been changing the list: then nobody knows what it
 * holds. */
void spawn_fork_child(void)
{
	if (!pthread_mutex_trylock(&spawn_lock)) {
		pthread_mutex_unlock(&spawn_lock);
		return;
	}
	spawn_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	spawn_files = NULL;
}

static bool has_files(const posix_spawn_file_actions_t *actions)
{
	for (const struct spawn_file *f = spawn_files; f; f = f->next)
		if (f->actions == actions)
			return true;
	return false;
}

int spawn_files_open(const posix_spawn_file_actions_t *actions, bool *held)
{
	no_cancellation();
	int saved_errno = errno, ret = 0;

	*held = false;
	if (likely(!atomic_load(&spawn_files)) || !actions)
		return 0;
	pthread_mutex_lock(&spawn_lock);
	*held = has_files(actions);
	for (struct spawn_file *f = spawn_files; f && !ret; f = f->next)
		if (f->actions == actions)
			ret = spawn_file_open(f);
	if (!*held)
		pthread_mutex_unlock(&spawn_lock);
	errno = saved_errno;
	return ret;
}

void spawn_files_close(const posix_spawn_file_actions_t *actions, bool held)
{
	no_cancellation();
	int saved_errno = errno;

	if (!held)
		return;
	for (struct spawn_file *f = spawn_files; f; f = f->next)
		if (f->actions == actions)
			spawn_file_close(f);
	pthread_mutex_unlock(&spawn_lock);
	errno = saved_errno;
}
