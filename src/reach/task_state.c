// SPDX-License-Identifier: BSD-2-Clause
#include "reach/task_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* proc(5) counts from 1 */
#define STAT_FIELD_USER	  14
#define STAT_FIELD_SYSTEM 15
#define STAT_FIELD_BEGAN  22

/* The most threads that are looked at. */
#define TASK_THREADS 64u

/* Reads a small file whole: its length, or negative errno. */
static ssize_t proc_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : read(fd, text, size - 1);

	if (fd < 0)
		return n;
	if (n < 0)
		n = -errno;
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

static ssize_t task_read(pid_t pid, pid_t tid, const char *file, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	return proc_read(path, text, size);
}

/* What follows the name, which may contain anything: field 3, the state. */
static const char *stat_after_name(const char *stat)
{
	const char *end = strrchr(stat, ')');

	return end && end[1] == ' ' ? end + 2 : NULL;
}

static uint64_t stat_number(const char *stat, int field)
{
	const char *at = stat_after_name(stat);

	for (int i = 3; at && i < field; i++) {
		at = strchr(at, ' ');
		at += !!at;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t task_began(pid_t pid)
{
	char path[32], stat[1024];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return proc_read(path, stat, sizeof(stat)) > 0 ? stat_number(stat, STAT_FIELD_BEGAN) : 0;
}

/* The letter of proc(5); 0: its file cannot be read. */
static char thread_state(pid_t pid, pid_t tid)
{
	char stat[1024];
	const char *state;

	if (task_read(pid, tid, "stat", stat, sizeof(stat)) <= 0)
		return 0;
	state = stat_after_name(stat);
	return state ? *state : '?';
}

uint64_t task_ran_ms(pid_t pid, pid_t tid)
{
	long ticks = sysconf(_SC_CLK_TCK);
	char stat[1024];

	if (ticks <= 0 || task_read(pid, tid, "stat", stat, sizeof(stat)) <= 0)
		return 0;
	return (stat_number(stat, STAT_FIELD_USER) + stat_number(stat, STAT_FIELD_SYSTEM)) * 1000 /
	       (uint64_t)ticks;
}

/* /proc may hide a thread, be missing, or want a descriptor that we do not get. */
static bool is_gone(pid_t pid, pid_t tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) < 0 && errno == ESRCH;
}

/*
 * A thread that sleeps has left its restartable sequence for good.  It may sleep inside the one
 * call that matters; but if the freezer has it, that call is over.
 */
static bool sleeps_elsewhere(pid_t pid, pid_t tid)
{
	char text[128];
	long nr;
	char *end;

	if (task_read(pid, tid, "syscall", text, sizeof(text)) <= 0)
		return false;
	nr = strtol(text, &end, 10);
	if (end == text) /* "running" */
		return false;
	if (nr != SYS_process_vm_writev && nr != SYS_process_vm_readv)
		return true;
	return task_read(pid, tid, "wchan", text, sizeof(text)) > 0 &&
	       (strstr(text, "do_freezer_trap") || strstr(text, "__refrigerator"));
}

enum task_state task_look(pid_t pid, pid_t tid, uint64_t began, uint64_t mask)
{
	uint64_t now = task_began(pid);

	if (now && (now & mask) != began)
		return TASK_GONE;
	switch (thread_state(pid, tid)) {
	case 0:
		return is_gone(pid, tid) ? TASK_GONE : TASK_MAY_ACCESS;
	case 'Z':
	case 'X':
		return TASK_GONE;
	case 'T':
	case 't':
		return TASK_STOPPED;
	case 'S':
	case 'D':
		return sleeps_elsewhere(pid, tid) ? TASK_STOPPED : TASK_MAY_ACCESS;
	default:
		return TASK_MAY_ACCESS;
	}
}

static bool thread_goes_on(pid_t pid, pid_t tid)
{
	char state = thread_state(pid, tid);

	return state == 'R' || state == 'S' || state == 'D';
}

bool task_goes_on(pid_t pid)
{
	unsigned threads = 0;
	const struct dirent *e;
	char path[32];
	bool all = true;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return false;
	while (all && (e = readdir(tasks)))
		if (e->d_name[0] != '.')
			all = ++threads <= TASK_THREADS && thread_goes_on(pid, atoi(e->d_name));
	closedir(tasks);
	return all && threads;
}
