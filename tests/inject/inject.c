/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault injector; see inject.h.
 *
 * It stands in front of the device's own preload library.  Whose call it is says the address that
 * it returns to.  While a counted call runs, what that thread calls below is part of it: the
 * library's own mmap ends in a system call that is not a second one.
 */
#undef _FILE_OFFSET_BITS /* would make open another name of open64 */
#undef _FORTIFY_SOURCE

#include "inject.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/uio.h>
#include <unistd.h>

#define exported __attribute__((visibility("default")))

/* A name that no header declares. */
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
		      void *object);
/* libc's own, for those that run before symbols can be looked up. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *p);

static struct inject_report own_report;
static struct inject_report *report = &own_report;
static uint64_t first, last;
static const char *only;
static uintptr_t text_start, text_end, base;
static __thread bool inside __attribute__((tls_model("initial-exec")));

/* ---- whose call it is ---- */

static int object_find(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *wanted = arg;
	char program[256] = "";
	const char *name = info->dlpi_name;

	(void)size;
	if (!name || !*name) {
		ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

		program[n > 0 ? n : 0] = '\0';
		name = program;
	}
	name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	if (!strstr(name, wanted))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		base = info->dlpi_addr;
		text_start = info->dlpi_addr + segment->p_vaddr;
		text_end = text_start + segment->p_memsz;
	}
	return 1;
}

static uint64_t number_of(const char *variable)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void report_map(void)
{
	const char *path = getenv("INJECT_REPORT");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		report = at;
}

static __attribute__((constructor)) void inject_start(void)
{
	char *into = getenv("INJECT_INTO");

	if (!into)
		return;
	first = number_of("INJECT_FIRST");
	last = number_of("INJECT_LAST");
	only = getenv("INJECT_ONLY");
	report_map();
	dl_iterate_phdr(object_find, into);
}

exported void inject_hold(bool on)
{
	atomic_store(&report->hold, on);
}

static bool is_theirs(const void *caller)
{
	return (uintptr_t)caller >= text_start && (uintptr_t)caller < text_end;
}

/* Says whether this call is to fail. */
static bool call_fails(const void *caller, const char *name)
{
	uint64_t number;

	if (!is_theirs(caller) || inside || atomic_load(&report->hold) ||
	    (only && strcmp(only, name) != 0))
		return false;
	number = atomic_fetch_add(&report->calls, 1) + 1;
	if (!first || number < first || (last && number > last))
		return false;
	if (atomic_fetch_add(&report->failed, 1) == 0) {
		report->offset = (uintptr_t)caller - base;
		strncpy(report->name, name, sizeof(report->name) - 1);
	}
	return true;
}

#define CALLER __builtin_return_address(0)

/* ---- memory: what has been allocated is remembered until it is freed ---- */

#define LIVE_MAX (1u << 16)

static struct {
	void *at;
	const void *caller;
} live[LIVE_MAX];
static size_t nlive;
static _Atomic(pid_t) live_owner;

/* The process that holds it, 0: none.  A forked child takes over what a thread of its parent
 * held. */
static void live_lock(void)
{
	pid_t self = getpid(), owner = 0;

	while (!atomic_compare_exchange_weak(&live_owner, &owner, self)) {
		if (owner == self) {
			sched_yield();
			owner = 0;
		}
	}
}

static void live_unlock(void)
{
	atomic_store(&live_owner, 0);
}

static size_t live_slot(const void *at)
{
	size_t i = ((uintptr_t)at >> 4) * 0x9e3779b97f4a7c15ull >> 48;

	while (live[i].at && live[i].at != at)
		i = (i + 1) % LIVE_MAX;
	return i;
}

static void *live_add(void *at, const void *caller)
{
	if (!at || !is_theirs(caller))
		return at;
	live_lock();
	if (nlive < LIVE_MAX / 2) {
		size_t i = live_slot(at);

		live[i].at = at;
		live[i].caller = caller;
		nlive++;
	}
	live_unlock();
	return at;
}

/* Linear probing: what stands behind moves up. */
static void live_remove(const void *at)
{
	size_t i, next;

	if (!at || !text_end)
		return;
	live_lock();
	i = live_slot(at);
	if (!live[i].at)
		goto out;
	nlive--;
	live[i].at = NULL;
	for (next = (i + 1) % LIVE_MAX; live[next].at; next = (next + 1) % LIVE_MAX) {
		void *moved = live[next].at;
		const void *caller = live[next].caller;
		size_t to;

		live[next].at = NULL;
		to = live_slot(moved);
		live[to].at = moved;
		live[to].caller = caller;
	}
out:
	live_unlock();
}

exported size_t inject_live(void)
{
	return nlive;
}

exported void inject_live_print(void)
{
	for (size_t i = 0; i < LIVE_MAX; i++)
		if (live[i].at)
			fprintf(stderr, "not freed: %p, allocated at +0x%zx\n", live[i].at,
				(size_t)((uintptr_t)live[i].caller - base));
}

exported void *malloc(size_t bytes)
{
	if (call_fails(CALLER, "malloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return live_add(__libc_malloc(bytes), CALLER);
}

exported void *calloc(size_t n, size_t bytes)
{
	if (call_fails(CALLER, "calloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return live_add(__libc_calloc(n, bytes), CALLER);
}

exported void *realloc(void *p, size_t bytes)
{
	void *at;

	if (call_fails(CALLER, "realloc")) {
		errno = ENOMEM;
		return NULL;
	}
	/* Before: another thread may get these addresses. */
	live_remove(p);
	at = __libc_realloc(p, bytes);
	return live_add(at ? at : p, CALLER) ? at : NULL;
}

exported void *reallocarray(void *p, size_t n, size_t bytes)
{
	void *at;

	if (call_fails(CALLER, "reallocarray") || __builtin_mul_overflow(n, bytes, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	live_remove(p);
	at = __libc_realloc(p, bytes);
	return live_add(at ? at : p, CALLER) ? at : NULL;
}

exported void *aligned_alloc(size_t align, size_t bytes)
{
	if (call_fails(CALLER, "aligned_alloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return live_add(__libc_memalign(align, bytes), CALLER);
}

exported void free(void *p)
{
	live_remove(p);
	__libc_free(p);
}

/* ---- everything else ---- */

/*
 * WRAP(type of result, name, parameters, arguments, errno, what a failed call returns).  Looking up
 * the real function may allocate, on behalf of nobody.
 */
#define WRAP_AS(result, name, parameters, arguments, failure)      \
	exported result name parameters                            \
	{                                                          \
		static result(*real) parameters;                   \
		bool fails = call_fails(CALLER, #name);            \
		bool was = inside;                                 \
		result answer_;                                    \
                                                                   \
		if (fails) {                                       \
			failure;                                   \
		}                                                  \
		inside = was || is_theirs(CALLER);                 \
		if (!real)                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
		answer_ = real arguments;                          \
		inside = was;                                      \
		return answer_;                                    \
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
WRAP(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags), EMFILE, -1)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), EMFILE, -1)
WRAP(FILE *, fdopen, (int fd, const char *mode), (fd, mode), ENOMEM, NULL)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
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
WRAP(ssize_t, recv, (int fd, void *at, size_t bytes, int flags), (fd, at, bytes, flags), ENOMEM, -1)
WRAP(int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms), ENOMEM, -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), ENOMEM, -1)
WRAP(int, mprotect, (void *at, size_t bytes, int rights), (at, bytes, rights), ENOMEM, -1)
WRAP(int, madvise, (void *at, size_t bytes, int how), (at, bytes, how), ENOMEM, -1)
WRAP(int, munlock, (const void *at, size_t bytes), (at, bytes), ENOMEM, -1)
WRAP(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *to, unsigned long nto, const struct iovec *from,
      unsigned long nfrom, unsigned long flags),
     (pid, to, nto, from, nfrom, flags), ENOMEM, -1)
WRAP(int, flock, (int fd, int how), (fd, how), ENOLCK, -1)
WRAP(int, ftruncate, (int fd, off_t bytes), (fd, bytes), ENOSPC, -1)
WRAP(int, ftruncate64, (int fd, __off64_t bytes), (fd, bytes), ENOSPC, -1)
WRAP(int, fallocate64, (int fd, int how, __off64_t at, __off64_t bytes), (fd, how, at, bytes),
     ENOSPC, -1)
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
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
WRAP(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), ENOSPC, -1)
WRAP(int, symlinkat, (const char *target, int at, const char *path), (target, at, path), ENOSPC, -1)
WRAP(int, linkat, (int from, const char *path, int at, const char *to, int flags),
     (from, path, at, to, flags), ENOSPC, -1)
WRAP(int, getifaddrs, (struct ifaddrs * *list), (list), ENOMEM, -1)
WRAP(ssize_t, pwrite64, (int fd, const void *at, size_t bytes, __off64_t offset),
     (fd, at, bytes, offset), ENOSPC, -1)
WRAP(void *, mmap, (void *at, size_t bytes, int rights, int flags, int fd, off_t offset),
     (at, bytes, rights, flags, fd, offset), ENOMEM, MAP_FAILED)
WRAP(void *, mmap64, (void *at, size_t bytes, int rights, int flags, int fd, __off64_t offset),
     (at, bytes, rights, flags, fd, offset), ENOMEM, MAP_FAILED)

/* Threads, processes and what belongs to them. */
WRAP_AS(int, pthread_create,
	(pthread_t * thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg),
	(thread, attr, main, arg), return EAGAIN)
WRAP_AS(int, pthread_key_create, (pthread_key_t * key, void (*drop)(void *)), (key, drop),
	return EAGAIN)
WRAP_AS(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value),
	return ENOMEM)
WRAP_AS(int, pthread_attr_init, (pthread_attr_t * attr), (attr), return ENOMEM)
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

	if (attr && call_fails(CALLER, "pthread_mutex_init"))
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

	if (call_fails(CALLER, "prctl")) {
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
	if (call_fails(CALLER, "execve")) {
		errno = ENOMEM;
		return -1;
	}
	return execveat(AT_FDCWD, path, argv, envp, 0);
}

/* With a mode only if the flags say so, but a superfluous argument does no harm. */
#define WRAP_OPEN(name, parameters, ...)                              \
	exported int name parameters                                  \
	{                                                             \
		static int(*real) parameters;                         \
		bool fails = call_fails(CALLER, #name), was = inside; \
		mode_t mode;                                          \
		va_list args;                                         \
		int fd;                                               \
                                                                      \
		if (fails) {                                          \
			errno = EMFILE;                               \
			return -1;                                    \
		}                                                     \
		va_start(args, flags);                                \
		mode = va_arg(args, mode_t);                          \
		va_end(args);                                         \
		inside = was || is_theirs(CALLER);                    \
		if (!real)                                            \
			*(void **)&real = dlsym(RTLD_NEXT, #name);    \
		fd = real(__VA_ARGS__, flags, mode);                  \
		inside = was;                                         \
		return fd;                                            \
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
	bool theirs = is_theirs(CALLER), was = inside;
	ssize_t n;

	if (theirs && !was && write_may_fail(fd) && call_fails(CALLER, "write")) {
		errno = ENOMEM;
		return -1;
	}
	inside = was || theirs;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	n = real(fd, at, bytes);
	inside = was;
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
	bool theirs = is_theirs(CALLER), was = inside;
	ssize_t n;

	if (theirs && !was && read_may_fail(fd) && call_fails(CALLER, "read")) {
		errno = EIO;
		return -1;
	}
	inside = was || theirs;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "read");
	n = real(fd, at, bytes);
	inside = was;
	return n;
}

/* Signals interrupt a wait, but not all waits: every other call can fail. */
exported int epoll_wait(int fd, struct epoll_event *events, int n, int ms)
{
	static int (*real)(int fd, struct epoll_event *events, int n, int ms);
	static _Atomic(bool) interrupted;

	if (is_theirs(CALLER) && !atomic_exchange(&interrupted, false) &&
	    call_fails(CALLER, "epoll_wait")) {
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

	if (how == EPOLL_CTL_ADD && call_fails(CALLER, "epoll_ctl")) {
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

#define WRAP_FCNTL(name)                                                           \
	exported int name(int fd, int command, ...)                                \
	{                                                                          \
		static int (*real)(int fd, int command, ...);                      \
		bool fails = fcntl_may_fail(command) && call_fails(CALLER, #name); \
		bool was = inside;                                                 \
		va_list args;                                                      \
		void *arg;                                                         \
		int ret;                                                           \
                                                                                   \
		if (fails) {                                                       \
			errno = fcntl_error(command);                              \
			return -1;                                                 \
		}                                                                  \
		va_start(args, command);                                           \
		arg = va_arg(args, void *);                                        \
		va_end(args);                                                      \
		inside = was || is_theirs(CALLER);                                 \
		if (!real)                                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                 \
		ret = real(fd, command, arg);                                      \
		inside = was;                                                      \
		return ret;                                                        \
	}
WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)

/* Of system calls by number those that make something.  mmap and the like are counted above. */
static const struct {
	long number;
	int error;
} system_calls[] = {
	{SYS_openat, EMFILE},	   {SYS_userfaultfd, EMFILE}, {SYS_pidfd_open, EMFILE},
	{SYS_close_range, EMFILE}, {SYS_ioctl, ENOMEM},
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
		    call_fails(caller, "syscall")) {
			errno = system_calls[i].error;
			return -1;
		}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	ret = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	return ret;
}
