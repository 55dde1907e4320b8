// SPDX-License-Identifier: BSD-2-Clause
/* Programs that this one starts, and its children. */
#include "preload/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/descriptor.h"
#include "base/text.h"
#include "base/checkers.h"
#include "driver/cdev.h"
#include "preload/program_memory.h"
#include "preload/tree.h"

/* ---- posix_spawn ---- */

/*
 * What a program that posix_spawn starts has open.  The C library opens those files in the child,
 * without us.  So this process opens a file of the tree while it starts the program, and the child gets
 * a duplicate.  The descriptor has its number since the program added the action; a hidden file keeps it
 * until then.
 */

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
static void spawn_fork_child(void)
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

/* Before and after a program starts with these actions, which may be NULL.  Returns 0 or the error
 * of the start; spawn_files_close follows in any case. */
static int spawn_files_open(const posix_spawn_file_actions_t *actions, bool *held)
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

static void spawn_files_close(const posix_spawn_file_actions_t *actions, bool held)
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

/* ---- the functions of exec ---- */

/*
 * Programs that this one starts.  Whoever writes `LD_PRELOAD=x program` wants x, and does not think of
 * the devices.  So an environment that names a fabric and preloads something, but not this library,
 * gets this library back, in front of the rest, as `softhca run` puts it.  An environment without
 * LD_PRELOAD stays as it is: that is how to start a program without devices.
 *
 * A child of vfork, a child of fork in a program with threads, and a handler of a signal may call the
 * functions of exec.  So these neither allocate nor take a lock: the changed environment lies on the
 * stack, and the functions behind ours are looked up when this library begins.
 */

#define PRELOAD "LD_PRELOAD="
#define FABRIC	"SOFTHCA_DIR="
/* An environment of more entries would take much of a small stack; it stays as it is. */
#define ENTRIES_MAX 4096u
#define PAGE_BYTES  4096u

/* The path of this library, as LD_PRELOAD names it; empty until the constructor has run. */
static char library[PATH_MAX];

/* Returns the next definition.  The constructor asks for each; that of another library may have come
 * before it. */
#define NEXT(name)                                   \
	static __typeof__(&(name)) next_##name(void) \
	{                                            \
		return real(name);                   \
	}
NEXT(execve)
NEXT(execvpe)
NEXT(execveat)
NEXT(fexecve)

static __attribute__((constructor)) void exec_init(void)
{
	Dl_info info;

	(void)next_execve();
	(void)next_execvpe();
	(void)next_execveat();
	(void)next_fexecve();
	if (!dladdr(library, &info) || info.dli_fname[0] != '/' ||
	    !text_copy(library, sizeof(library), info.dli_fname))
		library[0] = '\0';
}

/* ---- what the environment says ---- */

/* The last page that was found to be readable, so that each is asked for once. */
struct pages {
	uintptr_t readable;
};

static bool can_read(struct pages *p, const void *at)
{
	uintptr_t page = (uintptr_t)at / PAGE_BYTES;

	if (page == p->readable)
		return true;
	if (!program_byte_can_be_read(at))
		return false;
	p->readable = page;
	return true;
}

static bool entry_is(struct pages *p, const char *entry, const char *name)
{
	for (size_t i = 0; name[i]; i++)
		if (!can_read(p, entry + i) || entry[i] != name[i])
			return false;
	return true;
}

/* Tells whether the list has this library, or a copy of it in another place. */
static bool list_has_library(const char *list)
{
	return strstr(list, text_file_name(library)) != NULL;
}

struct lack {
	size_t entries;
	size_t at;	  /* which of them preloads */
	const char *list; /* what it preloads */
	size_t bytes;	  /* of the entry in its place */
};

/* The kernel says what is wrong with an environment that cannot be read. */
static bool environment_lacks_library(char *const *env, struct lack *l)
{
	struct pages array = {UINTPTR_MAX}, strings = {UINTPTR_MAX};
	bool fabric = false;

	*l = (struct lack){0};
	if (!env || !library[0] || !tree_active())
		return false;
	for (size_t i = 0;; i++) {
		const char *first = (const char *)&env[i];

		if (i > ENTRIES_MAX || !can_read(&array, first) ||
		    !can_read(&array, first + sizeof(*env) - 1))
			return false;
		l->entries = i;
		if (!env[i])
			break;
		fabric |= entry_is(&strings, env[i], FABRIC);
		if (entry_is(&strings, env[i], PRELOAD)) {
			l->at = i;
			l->list = env[i] + strlen(PRELOAD);
		}
	}
	if (!fabric || !l->list || !program_path_is_valid(l->list) || !l->list[0] ||
	    list_has_library(l->list))
		return false;
	l->bytes = strlen(PRELOAD) + strlen(library) + 1 + strlen(l->list) + 1;
	return true;
}

static void entry_write(char *entry, const struct lack *l)
{
	stpcpy(stpcpy(stpcpy(stpcpy(entry, PRELOAD), library), ":"), l->list);
}

static char *const *environment_mend(char *const *env, const struct lack *l, char **room,
				     char *entry)
{
	entry_write(entry, l);
	memcpy(room, env, (l->entries + 1) * sizeof(*env));
	room[l->at] = entry;
	return room;
}

/* The environment for the new program; valid until the function that asks returns. */
#define WITH_LIBRARY(env)                                                              \
	({                                                                             \
		char *const *env_ = (env);                                             \
		struct lack lack_;                                                     \
		if (environment_lacks_library(env_, &lack_))                           \
			env_ = environment_mend(                                       \
				env_, &lack_,                                          \
				__builtin_alloca((lack_.entries + 1) * sizeof(*env_)), \
				__builtin_alloca(lack_.bytes));                        \
		env_;                                                                  \
	})

/* ---- exec ---- */

exported int execve(const char *path, char *const argv[], char *const envp[])
{
	return next_execve()(path, argv, WITH_LIBRARY(envp));
}

exported int execv(const char *path, char *const argv[])
{
	return next_execve()(path, argv, WITH_LIBRARY(environ));
}

exported int execvp(const char *file, char *const argv[])
{
	return next_execvpe()(file, argv, WITH_LIBRARY(environ));
}

exported int execvpe(const char *file, char *const argv[], char *const envp[])
{
	return next_execvpe()(file, argv, WITH_LIBRARY(envp));
}

exported int execveat(int dirfd, const char *path, char *const argv[], char *const envp[],
		      int flags)
{
	return next_execveat()(dirfd, path, argv, WITH_LIBRARY(envp), flags);
}

exported int fexecve(int fd, char *const argv[], char *const envp[])
{
	return next_fexecve()(fd, argv, WITH_LIBRARY(envp));
}

/* Makes argv of the arguments from the second one on; 'args' then stands behind the null pointer. */
static void arguments_take(char **argv, const char *first, va_list *args)
{
	size_t n = 0;

	for (argv[0] = (char *)(uintptr_t)first; n == 0 || argv[n];)
		argv[++n] = va_arg(*args, char *);
}

static size_t arguments_count(va_list *args)
{
	size_t n = 1;

	while (va_arg(*args, char *))
		n++;
	return n;
}

/* argv on the stack of the caller, and 'args' behind it. */
#define ARGUMENTS(first, args)                                                             \
	({                                                                                 \
		va_list count_;                                                            \
		char **argv_;                                                              \
		va_start(count_, first);                                                   \
		argv_ = __builtin_alloca((arguments_count(&count_) + 1) * sizeof(*argv_)); \
		va_end(count_);                                                            \
		va_start(args, first);                                                     \
		arguments_take(argv_, first, &(args));                                     \
		argv_;                                                                     \
	})

exported int execl(const char *path, const char *first, ...)
{
	va_list args;
	char **argv = ARGUMENTS(first, args);

	va_end(args);
	return next_execve()(path, argv, WITH_LIBRARY(environ));
}

exported int execlp(const char *file, const char *first, ...)
{
	va_list args;
	char **argv = ARGUMENTS(first, args);

	va_end(args);
	return next_execvpe()(file, argv, WITH_LIBRARY(environ));
}

exported int execle(const char *path, const char *first, ...)
{
	va_list args;
	char **argv = ARGUMENTS(first, args);
	char *const *envp = va_arg(args, char *const *);

	va_end(args);
	return next_execve()(path, argv, WITH_LIBRARY(envp));
}

/* ---- programs beside this one ---- */

/* They give an ID or a descriptor of the process, both of which are an int. */
#define SPAWNS(name)                                                                            \
	exported int name(int *restrict id, const char *restrict program,                       \
			  const posix_spawn_file_actions_t *restrict actions,                   \
			  const posix_spawnattr_t *restrict attr, char *const *restrict argv,   \
			  char *const *restrict envp)                                           \
	{                                                                                       \
		bool held;                                                                      \
		int ret = spawn_files_open(actions, &held);                                     \
                                                                                                \
		if (!ret)                                                                       \
			ret = real(name)(id, program, actions, attr, argv, WITH_LIBRARY(envp)); \
		spawn_files_close(actions, held);                                               \
		return ret;                                                                     \
	}

SPAWNS(posix_spawn)
SPAWNS(posix_spawnp)
#if __GLIBC_PREREQ(2, 39)
SPAWNS(pidfd_spawn)
SPAWNS(pidfd_spawnp)
#endif

/* These two start a shell inside the C library, with the environment of the process. */
static void own_environment_mend(void)
{
	struct lack l;
	char *entry;

	if (!environment_lacks_library(environ, &l))
		return;
	entry = __builtin_alloca(l.bytes);
	entry_write(entry, &l);
	(void)setenv("LD_PRELOAD", entry + strlen(PRELOAD), 1);
}

exported int system(const char *command)
{
	own_environment_mend();
	return real(system)(command);
}

exported FILE *popen(const char *command, const char *mode)
{
	own_environment_mend();
	return real(popen)(command, mode);
}

/* ---- fork(2): a process that never opened a device file forks as fast as without us ---- */

/* Each thread has its own, because another may open the first device between the handlers. */
static __thread bool prepared;

static void fork_prepare(void)
{
	cdev_serving_fork_lock();
	prepared = tree_device_opened();
	if (prepared)
		cdev_fork_prepare();
	tsan_no_jump();
}

static void fork_in_parent(void)
{
	if (prepared)
		cdev_fork_parent();
	cdev_serving_fork_unlock();
	tsan_no_jump();
}

static void fork_in_child(void)
{
	if (prepared) {
		cdev_fork_child();
		tree_device_forked();
	}
	cdev_serving_fork_unlock();
	spawn_fork_child();
	tsan_no_jump();
}

static __attribute__((constructor)) void fork_init(void)
{
	if (tree_active())
		pthread_atfork(fork_prepare, fork_in_parent, fork_in_child);
}
