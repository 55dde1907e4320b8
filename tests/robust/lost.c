// SPDX-License-Identifier: BSD-2-Clause
/*
 * The descriptors of device files go in each way that there is, and a plain file gets their numbers: it
 * is a plain file then.  Or a child loses them, and they stay what they are.
 *
 *	lost WAY
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_device.h"

#define STACK_BYTES (256u << 10)
#define PAGE	    4096u

static char name[] = "/tmp/lost.XXXXXX";

/* ---- ways to lose a descriptor; some put the plain file in its place ---- */

static void by_fclose(int fd)
{
	FILE *f = fdopen(fd, "r");

	if (!f)
		device_die("fdopen: %m");
	fclose(f);
}

static void by_freopen(int fd)
{
	FILE *f = fdopen(fd, "r");

	if (!f || !freopen(name, "w+", f) || fileno(f) != fd)
		device_die("freopen: %m");
}

static void by_close(int fd)
{
	close(fd);
}

static void by_close_range(int fd)
{
	close_range((unsigned)fd, (unsigned)fd, 0);
}

static void by_closefrom(int fd)
{
	closefrom(fd);
}

static void over(int fd, int (*duplicate)(int from, int to))
{
	int plain = open(name, O_RDWR);

	if (plain < 0 || duplicate(plain, fd) != fd)
		device_die("dup: %m");
	close(plain);
}

static int bare_dup2(int from, int to)
{
	return (int)syscall(SYS_dup3, from, to, 0);
}

static int plain_dup3(int from, int to)
{
	return dup3(from, to, O_CLOEXEC);
}

static void by_dup2(int fd)
{
	over(fd, dup2);
}

static void by_dup3(int fd)
{
	over(fd, plain_dup3);
}

static void by_bare_dup(int fd)
{
	over(fd, bare_dup2);
}

static void by_bare_close(int fd)
{
	syscall(SYS_close, fd);
}

static void by_bare_close_range(int fd)
{
	syscall(SYS_close_range, fd, fd, 0);
}

static int lost_by_child(void *arg)
{
	_exit(close(*(int *)arg));
}

static void by_clone(int fd, int flags)
{
	char *stack = malloc(STACK_BYTES);
	int status = 0;
	pid_t child;

	if (!stack)
		device_die("no memory");
	child = clone(lost_by_child, stack + STACK_BYTES, flags | SIGCHLD, &fd);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		device_die("clone: %m, status 0x%x", status);
	free(stack);
}

static void by_child_that_shares(int fd)
{
	by_clone(fd, CLONE_FILES);
}

static void by_vfork_that_shares(int fd)
{
	by_clone(fd, CLONE_FILES | CLONE_VM | CLONE_VFORK);
}

static void by_vfork(int fd)
{
	by_clone(fd, CLONE_VM | CLONE_VFORK);
}

static void by_spawn(int fd)
{
	char *argv[] = {(char[]){"true"}, NULL};
	posix_spawn_file_actions_t actions = {0};
	int status;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, 0, fd);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (posix_spawnp(&child, "true", &actions, NULL, argv, environ) ||
	    waitpid(child, &status, 0) != child || status)
		device_die("posix_spawn: %m");
	posix_spawn_file_actions_destroy(&actions);
}

static const struct {
	const char *name;
	void (*lose)(int fd);
	bool stays; /* the descriptor is the device's as before */
} ways[] = {
	{"fclose", by_fclose, false},
	{"freopen", by_freopen, false},
	{"close", by_close, false},
	{"close_range", by_close_range, false},
	{"closefrom", by_closefrom, false},
	{"dup2", by_dup2, false},
	{"dup3", by_dup3, false},
	{"a bare dup3", by_bare_dup, false},
	{"a bare close", by_bare_close, false},
	{"a bare close_range", by_bare_close_range, false},
	{"a child that shares the table", by_child_that_shares, false},
	{"a vfork child that shares the table", by_vfork_that_shares, false},
	{"a vfork child", by_vfork, true},
	{"posix_spawn", by_spawn, true},
};

/* ---- what has the number now ---- */

static void expect_plain(int fd, const char *what)
{
	char text[8] = "";
	struct stat st;
	char *map;
	int n = 0;

	if (write(fd, "hello", 5) != 5 || pread(fd, text, 5, 0) != 5 || strcmp(text, "hello") != 0)
		device_die("%s: the plain file has '%s': %m", what, text);
	if (lseek(fd, 1, SEEK_SET) != 1 || read(fd, text, 4) != 4 || memcmp(text, "ello", 4) != 0)
		device_die("%s: the plain file is read wrongly: %m", what);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size != 5)
		device_die("%s: mode 0%o, %ld bytes", what, st.st_mode, (long)st.st_size);
	if (lseek(fd, 0, SEEK_SET) || ioctl(fd, FIONREAD, &n) || n != 5)
		device_die("%s: FIONREAD %d: %m", what, n);
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED || memcmp(map, "hello", 5) != 0)
		device_die("%s: the mapping of the plain file: %m", what);
	munmap(map, PAGE);
}

static void try(size_t way, int fd, const char *what)
{
	struct stat before, now;
	int plain = fd;

	if (fd < 0)
		device_die("%s: %m", what);
	if (truncate(name, 0) || fstat(fd, &before))
		device_die("%s: %m", what);
	ways[way].lose(fd);
	if (ways[way].stays) {
		if (fstat(fd, &now) || now.st_ino != before.st_ino || now.st_mode != before.st_mode)
			device_die("%s: not what it was", what);
		return;
	}
	if (fcntl(fd, F_GETFD) < 0)
		plain = open(name, O_RDWR);
	if (plain != fd)
		device_die("%s: the plain file is at %d, not at %d", what, plain, fd);
	expect_plain(plain, what);
	close(plain);
}

static int channel_fd(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list ? ibv_open_device(list[0]) : NULL;
	struct ibv_comp_channel *channel = ctx ? ibv_create_comp_channel(ctx) : NULL;

	return channel ? channel->fd : -1;
}

int main(int argc, char **argv)
{
	const char *files[] = {"/dev/infiniband/umad0", "/dev/infiniband/issm0",
			       "/dev/infiniband/uverbs0",
			       "/sys/class/infiniband/mlx5_0/ports/1/state"};
	size_t way = 0;
	int fd;

	while (argc == 2 && way < sizeof(ways) / sizeof(ways[0]) &&
	       strcmp(ways[way].name, argv[1]) != 0)
		way++;
	if (argc != 2 || way == sizeof(ways) / sizeof(ways[0]))
		device_die("usage: lost WAY");
	fd = mkstemp(name);
	if (fd < 0)
		device_die("mkstemp: %m");
	close(fd);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		try(way, open(files[i], i < 3 ? O_RDWR : O_RDONLY), files[i]);
	try(way, channel_fd(), "a completion channel");
	unlink(name);
	return 0;
}
