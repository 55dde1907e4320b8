// SPDX-License-Identifier: BSD-2-Clause
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
#include "preload/libc.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "preload/program_memory.h"
#include "preload/spawn.h"
#include "preload/tree.h"

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
