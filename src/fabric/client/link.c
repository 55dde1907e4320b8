// SPDX-License-Identifier: BSD-2-Clause
/* Connecting to softhcad. */
#include "fabric/client/link.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "fabric/protocol.h"
#include "fabric/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * Starts softhcad from inside any program, without the program noticing: no SIGCHLD, no child for
 * its wait(), no descriptor kept open.  The daemon inherits none of the program's environment
 * hooks.
 */

/* ---- remembers where this process's fabric is ---- */

static struct fabric_environment environment;

static bool environment_take(const char *name, char *buf, size_t size)
{
	const char *value = getenv(name);

	if (!value || strlen(value) >= size)
		return false;
	memcpy(buf, value, strlen(value) + 1);
	return true;
}

static void environment_read(void)
{
	if (!environment_take("SOFTHCA_DIR", environment.dir, sizeof(environment.dir)))
		return;
	if (environment.dir[0] != '/') {
		environment.dir[0] = '\0';
		return;
	}
	environment_take("SOFTHCA_HOST", environment.host, sizeof(environment.host));
	environment_take("SOFTHCA_DAEMON", environment.daemon, sizeof(environment.daemon));
}

__attribute__((constructor)) static void environment_at_start(void)
{
	environment_read();
}

const struct fabric_environment *fabric_environment(void)
{
	/* A test may have set the variables after the constructor ran. */
	if (!environment.dir[0])
		environment_read();
	return environment.dir[0] ? &environment : NULL;
}

void fabric_environment_renew(void)
{
	environment = (struct fabric_environment){0};
	environment_read();
}

/*
 * An intermediate child starts the daemon and ends, which makes the daemon an orphan.  That child
 * has no exit signal, so wait() without __WCLONE does not see it (clone(2)).  The daemon cannot be
 * a child itself: execve sets the exit signal back to SIGCHLD.
 */

#define STACK_BYTES 65536u
#define REAP_S	    1 /* limit for a daemon to serve or end, which takes milliseconds */

struct birth {
	const char *path;
	char *const *argv;
	char *const *envp;
	char *stack; /* for the second child; the first has the other half */
	int ready;   /* the daemon's end of the pipe, and the program's */
	int verdict_fd;
	int error;
	bool told; /* the daemon has told its verdict: */
	int32_t verdict;
};

/* Both children run in the program's memory (CLONE_VM) while the program waits (CLONE_VFORK), so
 * they call nothing that takes locks, allocates, or is a cancellation point. */
static int birth_daemon(void *arg)
{
	struct birth *b = arg;

	fcntl(b->ready, F_SETFD, 0); /* the descriptor table is our own copy */
	execve(b->path, b->argv, b->envp);
	b->error = errno;
	_exit(127);
}

/*
 * A daemon that finds another one serving ends at once.  In many containers process 1 does not wait
 * for orphans, so only the daemon's parent can keep it from becoming a zombie there.
 */
static void reap_unless_serving(struct birth *b, pid_t daemon)
{
	int pidfd = (int)syscall(SYS_pidfd_open, daemon, 0);
	struct pollfd p[] = {{.fd = pidfd, .events = POLLIN},
			     {.fd = b->verdict_fd, .events = POLLIN}};
	struct timespec limit = {.tv_sec = REAP_S}, again = limit;

	if (pidfd < 0) /* before Linux 5.3 */
		return;
	/* libc would check for cancellation, and would find our parent's */
	if (syscall(SYS_ppoll, p, 2, &limit, NULL, 0) > 0 && p[1].revents & POLLIN)
		b->told = syscall(SYS_read, b->verdict_fd, &b->verdict, sizeof(b->verdict)) ==
			  sizeof(b->verdict);
	if (b->told && b->verdict)
		syscall(SYS_ppoll, p, 1, &again, NULL, 0);
	syscall(SYS_wait4, daemon, NULL, WNOHANG, NULL);
}

static int birth_between(void *arg)
{
	struct birth *b = arg;
	pid_t daemon = clone(birth_daemon, b->stack, CLONE_VM | CLONE_VFORK | SIGCHLD, b);

	if (daemon < 0)
		b->error = errno;
	else
		reap_unless_serving(b, daemon);
	_exit(0);
}

/* The daemon must not load the preload library, nor take itself for a client. */
static char **environment_filter(void)
{
	static const char *const dropped[] = {
		"LD_PRELOAD=", "SOFTHCA_DIR=", "SOFTHCA_HOST=", "SOFTHCA_DAEMON="};
	size_t n = 0, kept = 0;
	char **envp;

	while (environ && environ[n])
		n++;
	envp = calloc(n + 1, sizeof(*envp));
	if (!envp)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		bool drop = false;

		for (size_t j = 0; j < array_size(dropped); j++)
			drop |= !strncmp(environ[i], dropped[j], strlen(dropped[j]));
		if (!drop)
			envp[kept++] = environ[i];
	}
	return envp;
}

static int start_spawn(struct birth *b)
{
	/* Plain memory is enough, because stacks grow down from the middle and from the end. */
	char *stack = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, old;
	pid_t pid;

	if (stack == MAP_FAILED)
		return -errno;
	b->stack = stack + STACK_BYTES;
	/* A handler of the program must not run in a child that shares its memory. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = clone(birth_between, stack + (size_t)2 * STACK_BYTES, CLONE_VM | CLONE_VFORK, b);
	if (pid < 0)
		b->error = errno;
	else
		waitpid(pid, NULL, __WCLONE);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	munmap(stack, (size_t)2 * STACK_BYTES);
	return -b->error;
}

/* The daemon writes its verdict; if it dies before that, the pipe ends. */
static int wait_ready(struct birth *b)
{
	struct pollfd p = {.fd = b->verdict_fd, .events = POLLIN};
	ssize_t n;
	int ret;

	if (b->told)
		return b->verdict;
	do {
		ret = poll(&p, 1, FABRIC_TIMEOUT_MS);
	} while (ret < 0 && errno == EINTR);
	if (ret == 0)
		return -ETIMEDOUT;
	do {
		n = read(b->verdict_fd, &b->verdict, sizeof(b->verdict));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(b->verdict) ? b->verdict : -ECONNREFUSED;
}

/* Returns 0 when a daemon listens in dir (this one or a quicker one), else negative errno. */
static must_check int fabric_start(const char *daemon, const char *dir)
{
	char name[] = "softhcad", dir_opt[] = "--dir", ready_opt[] = "--ready-fd";
	char dir_arg[FABRIC_PATH_BYTES], ready_arg[16];
	char *argv[] = {name, dir_opt, dir_arg, ready_opt, ready_arg, NULL};
	struct birth b = {.path = daemon, .argv = argv};
	int pipefd[2];
	char **envp;
	int ret;

	if (snprintf(dir_arg, sizeof(dir_arg), "%s", dir) >= (int)sizeof(dir_arg))
		return -ENAMETOOLONG;
	envp = environment_filter();
	if (!envp)
		return -ENOMEM;
	if (pipe2(pipefd, O_CLOEXEC)) {
		ret = -errno;
		goto free_envp;
	}
	snprintf(ready_arg, sizeof(ready_arg), "%d", pipefd[1]);
	b.ready = pipefd[1];
	b.verdict_fd = pipefd[0];
	b.envp = envp;
	ret = start_spawn(&b);
	close(pipefd[1]);
	if (!ret)
		ret = wait_ready(&b);
	close(pipefd[0]);
	if (ret == FABRIC_ANOTHER_SERVES)
		ret = 0;
free_envp:
	free(envp);
	return ret;
}

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

int link_connect(const char *dir)
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
		sock = link_connect(dir);
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
