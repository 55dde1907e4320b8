// SPDX-License-Identifier: BSD-2-Clause
/*
 * Starts itself anew, by each function that the C library has for that, in an environment that
 * preloads another library in the place of ours.  The new program finds devices all the same.  One
 * that is started without LD_PRELOAD does not.
 *
 *	started WAY
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OTHER "libm.so.6"
#define FOUND 40 /* the new program's status: it has devices and the other library's name */
#define NONE  41

static char self[PATH_MAX], command[PATH_MAX + 16];
static char again[] = "started", other[] = "LD_PRELOAD=" OTHER, nothing[] = "LD_PRELOAD=";
static char *arguments[] = {self, again, NULL};
static char **env; /* as environ, but with the other library */

/* ---- the new program ---- */

static int look(void)
{
	const char *preload = getenv("LD_PRELOAD");
	struct ibv_device **list;
	int n = 0;

	list = ibv_get_device_list(&n);
	if (list)
		ibv_free_device_list(list);
	if (!n)
		return NONE;
	return preload && strstr(preload, OTHER) ? FOUND : 1;
}

/* ---- ways to start it ---- */

static void by_execve(void)
{
	execve(self, arguments, env);
}

static void by_execv(void)
{
	environ = env;
	execv(self, arguments);
}

static void by_execvp(void)
{
	environ = env;
	execvp("started", arguments);
}

static void by_execvpe(void)
{
	execvpe("started", arguments, env);
}

static void by_execveat(void)
{
	execveat(AT_FDCWD, self, arguments, env, 0);
}

static void by_fexecve(void)
{
	fexecve(open(self, O_RDONLY | O_CLOEXEC), arguments, env);
}

static void by_execl(void)
{
	environ = env;
	execl(self, self, "started", NULL);
}

static void by_execlp(void)
{
	environ = env;
	execlp("started", self, "started", NULL);
}

static void by_execle(void)
{
	execle(self, self, "started", NULL, env);
}

/* A program that is started beside this one; the status is that of a child that waits for it. */
static void wait_and_leave(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	_exit(1);
}

static void by_posix_spawn(void)
{
	pid_t pid;

	if (!posix_spawn(&pid, self, NULL, NULL, arguments, env))
		wait_and_leave(pid);
}

static void by_posix_spawnp(void)
{
	pid_t pid;

	if (!posix_spawnp(&pid, "started", NULL, NULL, arguments, env))
		wait_and_leave(pid);
}

#if __GLIBC_PREREQ(2, 39)
static void wait_by_descriptor(int pidfd)
{
	siginfo_t info;

	if (!waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) && info.si_code == CLD_EXITED)
		_exit(info.si_status);
	_exit(1);
}

static void by_pidfd_spawn(void)
{
	int pidfd;

	if (!pidfd_spawn(&pidfd, self, NULL, NULL, arguments, env))
		wait_by_descriptor(pidfd);
}

static void by_pidfd_spawnp(void)
{
	int pidfd;

	if (!pidfd_spawnp(&pidfd, "started", NULL, NULL, arguments, env))
		wait_by_descriptor(pidfd);
}
#endif

static int executes(void *unused)
{
	execve(self, arguments, env);
	(void)unused;
	return 1;
}

/* As vfork does it: the child has the memory of this process until it executes. */
static void by_vfork(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	wait_and_leave(
		clone(executes, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
}

static void by_system(void)
{
	environ = env;
	_exit(WEXITSTATUS(system(command)));
}

static void by_popen(void)
{
	FILE *pipe;

	environ = env;
	pipe = popen(command, "w");
	_exit(pipe ? WEXITSTATUS(pclose(pipe)) : 1);
}

static const struct {
	const char *name;
	void (*start)(void);
} ways[] = {
	{"execve", by_execve},
	{"execv", by_execv},
	{"execvp", by_execvp},
	{"execvpe", by_execvpe},
	{"execveat", by_execveat},
	{"fexecve", by_fexecve},
	{"execl", by_execl},
	{"execlp", by_execlp},
	{"execle", by_execle},
	{"posix_spawn", by_posix_spawn},
	{"posix_spawnp", by_posix_spawnp},
#if __GLIBC_PREREQ(2, 39)
	{"pidfd_spawn", by_pidfd_spawn},
	{"pidfd_spawnp", by_pidfd_spawnp},
#endif
	{"vfork", by_vfork},
	{"system", by_system},
	{"popen", by_popen},
};

/* A copy of the environment; preload: what takes the place of LD_PRELOAD's entry, or NULL. */
static char **environment(char *preload)
{
	static char *copy[4096];
	size_t n = 0;

	for (char **e = environ; *e && n < 4094; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) != 0)
			copy[n++] = *e;
	if (preload)
		copy[n++] = preload;
	copy[n] = NULL;
	return copy;
}

static bool starts(void (*start)(void), int expected)
{
	pid_t child = fork();
	int status;

	if (!child) {
		start();
		_exit(1);
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != expected) {
		fprintf(stderr, "status 0x%x\n", (unsigned)status);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];
	size_t i = 0;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc == 2 && !strcmp(argv[1], "started"))
		return look();
	while (argc == 2 && i < sizeof(ways) / sizeof(ways[0]) &&
	       strcmp(ways[i].name, argv[1]) != 0)
		i++;
	if (argc != 2 || i == sizeof(ways) / sizeof(ways[0]) || n < 0)
		return 2;
	/* The search of PATH finds it, too. */
	memcpy(path, self, sizeof(path));
	*strrchr(path, '/') = '\0';
	setenv("PATH", path, 1);
	snprintf(command, sizeof(command), "'%s' started", self);
	env = environment(other);
	if (!starts(ways[i].start, FOUND))
		return 1;
	/* These two are wishes to do without. */
	env = environment(nothing);
	if (!starts(ways[i].start, NONE))
		return 1;
	env = environment(NULL);
	return !starts(ways[i].start, NONE);
}
