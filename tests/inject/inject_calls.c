/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that want descriptors, threads, memory of the kernel.
 */
#include "injector.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A name that no header declares. */
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
		      void *object);

/*
 * WRAP(type of result, name, parameters, arguments, errno, what a failed call returns).  Looking up
 * the real function may allocate, on behalf of nobody.
 */
#define WRAP_AS(result, name, parameters, arguments, failure)        \
	exported result name parameters                              \
	{                                                            \
		static result(*real) parameters;                     \
		bool fails = injector_fails(CALLER, #name);          \
		bool was = injector_inside;                          \
		result answer_;                                      \
                                                                     \
		if (fails) {                                         \
			failure;                                     \
		}                                                    \
		injector_inside = was || injector_is_theirs(CALLER); \
		if (!real)                                           \
			*(void **)&real = dlsym(RTLD_NEXT, #name);   \
		answer_ = real arguments;                            \
		injector_inside = was;                               \
		return answer_;                                      \
	}
#define WRAP(result, name, parameters, arguments, error, failed) \
	WRAP_AS(result, name, parameters, arguments, errno = (error); return (failed))

/* Descriptors. */
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, -1)
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags), EMFILE, -1)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
WRAP(int, socketpair, (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds), EMFILE, -1)
WRAP(int, dup, (int fd), (fd), EMFILE, -1)
WRAP(int, dup2, (int fd, int to), (fd, to), EMFILE, -1)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE, -1)
WRAP(int, inotify_init1, (int flags), (flags), EMFILE, -1)
WRAP(int, inotify_add_watch, (int fd, const char *path, uint32_t events), (fd, path, events),
     ENOSPC, -1)
WRAP(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags), EMFILE, -1)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), EMFILE, -1)
WRAP(FILE *, fdopen, (int fd, const char *mode), (fd, mode), ENOMEM, NULL)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
WRAP(FILE *, fopen64, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
WRAP(DIR *, opendir, (const char *path), (path), EMFILE, NULL)
WRAP(DIR *, fdopendir, (int fd), (fd), ENOMEM, NULL)

/* The kernel's memory. */
WRAP(int, connect, (int fd, const struct sockaddr *to, socklen_t bytes), (fd, to, bytes), ENOMEM,
     -1)
WRAP(int, accept4, (int fd, struct sockaddr *from, socklen_t *bytes, int flags),
     (fd, from, bytes, flags), ENOMEM, -1)
WRAP(int, bind, (int fd, const struct sockaddr *to, socklen_t bytes), (fd, to, bytes), ENOMEM, -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), ENOMEM, -1)
WRAP(int, getsockopt, (int fd, int level, int option, void *value, socklen_t *bytes),
     (fd, level, option, value, bytes), ENOMEM, -1)
WRAP(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t bytes),
     (fd, level, option, value, bytes), ENOMEM, -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), ENOBUFS, -1)
WRAP(ssize_t, send, (int fd, const void *at, size_t bytes, int flags), (fd, at, bytes, flags),
     ENOBUFS, -1)
WRAP(ssize_t, recv, (int fd, void *at, size_t bytes, int flags), (fd, at, bytes, flags), ENOMEM, -1)
WRAP(int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms), ENOMEM, -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), ENOMEM, -1)
WRAP(int, recvmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *within),
     (fd, m, n, flags, within), ENOMEM, -1)
WRAP(int, sendmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags), (fd, m, n, flags), ENOBUFS,
     -1)
WRAP(int, mprotect, (void *at, size_t bytes, int rights), (at, bytes, rights), ENOMEM, -1)
WRAP(int, madvise, (void *at, size_t bytes, int how), (at, bytes, how), ENOMEM, -1)
WRAP(int, munlock, (const void *at, size_t bytes), (at, bytes), ENOMEM, -1)
WRAP(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *to, unsigned long nto, const struct iovec *from,
      unsigned long nfrom, unsigned long flags),
     (pid, to, nto, from, nfrom, flags), ENOMEM, -1)
WRAP(ssize_t, process_vm_writev,
     (pid_t pid, const struct iovec *from, unsigned long nfrom, const struct iovec *to,
      unsigned long nto, unsigned long flags),
     (pid, from, nfrom, to, nto, flags), ENOMEM, -1)
WRAP(int, flock, (int fd, int how), (fd, how), ENOLCK, -1)
WRAP(int, ftruncate, (int fd, off_t bytes), (fd, bytes), ENOSPC, -1)
WRAP(int, ftruncate64, (int fd, __off64_t bytes), (fd, bytes), ENOSPC, -1)
WRAP(__off64_t, lseek64, (int fd, __off64_t at, int from), (fd, at, from), ENXIO, -1)
WRAP(int, fstat64, (int fd, struct stat64 *st), (fd, st), ENOMEM, -1)
WRAP(int, lstat64, (const char *path, struct stat64 *st), (path, st), ENOMEM, -1)
WRAP(int, fstatfs64, (int fd, struct statfs64 *st), (fd, st), EIO, -1)
WRAP(int, access, (const char *path, int mode), (path, mode), ENOMEM, -1)
WRAP(int, chdir, (const char *path), (path), ENOMEM, -1)
WRAP(int, unlink, (const char *path), (path), EIO, -1)
WRAP(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), EIO, -1)
WRAP(int, rmdir, (const char *path), (path), EIO, -1)
WRAP(ssize_t, getrandom, (void *at, size_t bytes, unsigned flags), (at, bytes, flags), EAGAIN, -1)
WRAP(char *, fgets, (char *line, int bytes, FILE *f), (line, bytes, f), ENOMEM, NULL)
WRAP(char *, strdup, (const char *text), (text), ENOMEM, NULL)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
WRAP(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), ENOSPC, -1)
WRAP(int, symlinkat, (const char *target, int at, const char *path), (target, at, path), ENOSPC, -1)
WRAP(int, mknodat, (int at, const char *path, mode_t mode, dev_t number), (at, path, mode, number),
     ENOSPC, -1)
WRAP(char *, realpath, (const char *path, char *resolved), (path, resolved), ENOMEM, NULL)
WRAP(ssize_t, readlinkat, (int at, const char *path, char *text, size_t bytes),
     (at, path, text, bytes), EIO, -1)
WRAP(int, linkat, (int from, const char *path, int at, const char *to, int flags),
     (from, path, at, to, flags), ENOSPC, -1)
WRAP(int, getifaddrs, (struct ifaddrs * *list), (list), ENOMEM, -1)
WRAP(ssize_t, pread64, (int fd, void *at, size_t bytes, __off64_t offset), (fd, at, bytes, offset),
     EIO, -1)
WRAP(ssize_t, pwrite64, (int fd, const void *at, size_t bytes, __off64_t offset),
     (fd, at, bytes, offset), ENOSPC, -1)
WRAP(void *, mmap, (void *at, size_t bytes, int rights, int flags, int fd, off_t offset),
     (at, bytes, rights, flags, fd, offset), ENOMEM, MAP_FAILED)
WRAP(void *, mmap64, (void *at, size_t bytes, int rights, int flags, int fd, __off64_t offset),
     (at, bytes, rights, flags, fd, offset), ENOMEM, MAP_FAILED)

/* Threads, processes and what belongs to them. */
WRAP_AS(int, posix_spawn_file_actions_adddup2,
	(posix_spawn_file_actions_t * actions, int fd, int to), (actions, fd, to), return ENOMEM)
WRAP_AS(int, pthread_create,
	(pthread_t * thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg),
	(thread, attr, main, arg), return EAGAIN)
WRAP_AS(int, pthread_key_create, (pthread_key_t * key, void (*drop)(void *)), (key, drop),
	return EAGAIN)
WRAP_AS(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value),
	return ENOMEM)
WRAP_AS(int, pthread_attr_init, (pthread_attr_t * attr), (attr), return ENOMEM)
WRAP(int, sched_getcpu, (void), (), ENOSYS, -1)
WRAP(int, sched_getaffinity, (pid_t pid, size_t bytes, cpu_set_t *cpus), (pid, bytes, cpus), EINVAL,
     -1)
WRAP(int, sched_setaffinity, (pid_t pid, size_t bytes, const cpu_set_t *cpus), (pid, bytes, cpus),
     EINVAL, -1)
WRAP(int, setrlimit64, (enum __rlimit_resource what, const struct rlimit64 *limit), (what, limit),
     EPERM, -1)
WRAP_AS(int, __register_atfork,
	(void (*before)(void), void (*parent)(void), void (*child)(void), void *object),
	(before, parent, child, object), return ENOMEM)
WRAP(int, clone, (int (*main)(void *), void *stack, int flags, void *arg, ...),
     (main, stack, flags, arg), EAGAIN, -1)
WRAP(unsigned, if_nametoindex, (const char *name), (name), EMFILE, 0)
WRAP(void *, dlopen, (const char *path, int flags), (path, flags), ENOMEM, NULL)

/* A plain mutex needs nothing from the system, a robust one its help. */
exported int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	static int (*real)(pthread_mutex_t * m, const pthread_mutexattr_t *attr);

	if (attr && injector_fails(CALLER, "pthread_mutex_init"))
		return ENOTSUP;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_init");
	return real(m, attr);
}

exported int prctl(int option, ...)
{
	static int (*real)(int option, ...);
	unsigned long a[4];
	va_list args;

	if (injector_fails(CALLER, "prctl")) {
		errno = EINVAL;
		return -1;
	}
	va_start(args, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(args, unsigned long);
	va_end(args);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "prctl");
	return real(option, a[0], a[1], a[2], a[3]);
}

/* In a child that shares its parent's memory, where nothing may be looked up. */
exported int execve(const char *path, char *const argv[], char *const envp[])
{
	if (injector_fails(CALLER, "execve")) {
		errno = ENOMEM;
		return -1;
	}
	return execveat(AT_FDCWD, path, argv, envp, 0);
}

/* With a mode only if the flags say so, but a superfluous argument does no harm. */
#define WRAP_OPEN(name, parameters, ...)                                           \
	exported int name parameters                                               \
	{                                                                          \
		static int(*real) parameters;                                      \
		bool fails = injector_fails(CALLER, #name), was = injector_inside; \
		mode_t mode;                                                       \
		va_list args;                                                      \
		int fd;                                                            \
                                                                                   \
		if (fails) {                                                       \
			errno = EMFILE;                                            \
			return -1;                                                 \
		}                                                                  \
		va_start(args, flags);                                             \
		mode = va_arg(args, mode_t);                                       \
		va_end(args);                                                      \
		injector_inside = was || injector_is_theirs(CALLER);               \
		if (!real)                                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                 \
		fd = real(__VA_ARGS__, flags, mode);                               \
		injector_inside = was;                                             \
		return fd;                                                         \
	}
WRAP_OPEN(open, (const char *path, int flags, ...), path)
WRAP_OPEN(open64, (const char *path, int flags, ...), path)
WRAP_OPEN(openat, (int at, const char *path, int flags, ...), at, path)
WRAP_OPEN(openat64, (int at, const char *path, int flags, ...), at, path)

/*
 * A pipe keeps a page of those that have been read, and the next write to it when it is empty needs
 * no other.
 */
#define PIPES 256u

static bool pipe_has_page(const struct stat *st, int fd)
{
	static _Atomic(ino_t) written[PIPES];
	_Atomic(ino_t) *seen = &written[st->st_ino % PIPES];
	int waiting = 0;

	return atomic_exchange(seen, st->st_ino) == st->st_ino && !ioctl(fd, FIONREAD, &waiting) &&
	       !waiting;
}

static bool write_may_fail(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode) || !pipe_has_page(&st, fd);
}

exported ssize_t write(int fd, const void *at, size_t bytes)
{
	static ssize_t (*real)(int fd, const void *at, size_t bytes);
	bool theirs = injector_is_theirs(CALLER), was = injector_inside;
	ssize_t n;

	if (theirs && !was && write_may_fail(fd) && injector_fails(CALLER, "write")) {
		errno = ENOMEM;
		return -1;
	}
	injector_inside = was || theirs;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	n = real(fd, at, bytes);
	injector_inside = was;
	return n;
}

/* Reading from a pipe needs nothing that could be missing. */
static bool read_may_fail(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode);
}

exported ssize_t read(int fd, void *at, size_t bytes)
{
	static ssize_t (*real)(int fd, void *at, size_t bytes);
	bool theirs = injector_is_theirs(CALLER), was = injector_inside;
	ssize_t n;

	if (theirs && !was && read_may_fail(fd) && injector_fails(CALLER, "read")) {
		errno = EIO;
		return -1;
	}
	injector_inside = was || theirs;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "read");
	n = real(fd, at, bytes);
	injector_inside = was;
	return n;
}

/* Signals interrupt a wait, but not all waits: every other call can fail. */
exported int epoll_wait(int fd, struct epoll_event *events, int n, int ms)
{
	static int (*real)(int fd, struct epoll_event *events, int n, int ms);
	static _Atomic(bool) interrupted;

	if (injector_is_theirs(CALLER) && !atomic_exchange(&interrupted, false) &&
	    injector_fails(CALLER, "epoll_wait")) {
		atomic_store(&interrupted, true);
		errno = EINTR;
		return -1;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
	return real(fd, events, n, ms);
}

/* What is watched already needs no memory. */
exported int epoll_ctl(int fd, int how, int which, struct epoll_event *event)
{
	static int (*real)(int fd, int how, int which, struct epoll_event *event);

	if (how == EPOLL_CTL_ADD && injector_fails(CALLER, "epoll_ctl")) {
		errno = ENOMEM;
		return -1;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "epoll_ctl");
	return real(fd, how, which, event);
}

/* The commands that may fail on a good descriptor. */
static bool fcntl_may_fail(int command)
{
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC || command == F_SETPIPE_SZ ||
	       command == F_ADD_SEALS;
}

static int fcntl_error(int command)
{
	return command == F_SETPIPE_SZ ? EPERM : command == F_ADD_SEALS ? EBUSY : EMFILE;
}

#define WRAP_FCNTL(name)                                                               \
	exported int name(int fd, int command, ...)                                    \
	{                                                                              \
		static int (*real)(int fd, int command, ...);                          \
		bool fails = fcntl_may_fail(command) && injector_fails(CALLER, #name); \
		bool was = injector_inside;                                            \
		va_list args;                                                          \
		void *arg;                                                             \
		int ret;                                                               \
                                                                                       \
		if (fails) {                                                           \
			errno = fcntl_error(command);                                  \
			return -1;                                                     \
		}                                                                      \
		va_start(args, command);                                               \
		arg = va_arg(args, void *);                                            \
		va_end(args);                                                          \
		injector_inside = was || injector_is_theirs(CALLER);                   \
		if (!real)                                                             \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                     \
		ret = real(fd, command, arg);                                          \
		injector_inside = was;                                                 \
		return ret;                                                            \
	}
WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)

/* System calls by number: those that make something, or that stand for a function above.  fstat of an
 * open descriptor does not fail. */
static const struct {
	long number;
	int error;
} system_calls[] = {
	{SYS_openat, EMFILE},	   {SYS_userfaultfd, EMFILE}, {SYS_pidfd_open, EMFILE},
	{SYS_close_range, EMFILE}, {SYS_ioctl, ENOMEM},	      {SYS_mmap, ENOMEM},
	{SYS_newfstatat, ENOMEM},
};

/* Taking the protection off a page, and waking who waits for it, needs no memory. */
static bool ioctl_may_fail(unsigned long request, long arg)
{
	const struct uffdio_writeprotect *wp = (const void *)(uintptr_t)arg;

	if (request == UFFDIO_WRITEPROTECT)
		return wp->mode & UFFDIO_WRITEPROTECT_MODE_WP;
	return request != UFFDIO_WAKE;
}

exported long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	const void *caller = CALLER;
	long a[6], ret;
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	for (size_t i = 0; i < sizeof(system_calls) / sizeof(*system_calls); i++)
		if (system_calls[i].number == number &&
		    (number != SYS_ioctl || ioctl_may_fail((unsigned long)a[1], a[2])) &&
		    injector_fails(caller, "syscall")) {
			errno = system_calls[i].error;
			return -1;
		}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	ret = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	return ret;
}
