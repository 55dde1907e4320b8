// SPDX-License-Identifier: BSD-2-Clause
#include "reach/task_state.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reach/proc_file.h"

/* proc(5) counts fields from 1 */
#define STAT_FIELD_USER	  14
#define STAT_FIELD_SYSTEM 15
#define STAT_FIELD_BEGAN  22

/* The most threads of a process that we look at. */
#define TASK_THREADS 64u

static ssize_t task_read(pid_t pid, pid_t tid, const char *file, char *text, size_t size)
{
	char name[64];

	snprintf(name, sizeof(name), "%d/task/%d/%s", (int)pid, (int)tid, file);
	return proc_file_read(name, text, size);
}

/* What follows the thread's name, which may contain anything: field 3, the state. */
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
	char name[32], stat[1024];

	snprintf(name, sizeof(name), "%d/stat", (int)pid);
	return proc_file_read(name, stat, sizeof(stat)) > 0 ? stat_number(stat, STAT_FIELD_BEGAN)
							    : 0;
}

static uint64_t stat_ran_ms(const char *stat)
{
	long ticks = sysconf(_SC_CLK_TCK);
	uint64_t ran = stat_number(stat, STAT_FIELD_USER) + stat_number(stat, STAT_FIELD_SYSTEM);

	return ticks > 0 ? ran * 1000 / (uint64_t)ticks : 0;
}

/* The state's letter in proc(5); 0: we cannot read the thread's file. */
static char thread_state(pid_t pid, pid_t tid, uint64_t *ran_ms)
{
	char stat[1024];
	const char *state;

	if (task_read(pid, tid, "stat", stat, sizeof(stat)) <= 0)
		return 0;
	state = stat_after_name(stat);
	*ran_ms = stat_ran_ms(stat);
	return state ? *state : '?';
}

/* Asks the kernel, because /proc may hide a thread, be missing, or want a descriptor that we do not
 * get. */
static bool is_gone(pid_t pid, pid_t tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) < 0 && errno == ESRCH;
}

/*
 * A thread that sleeps has left its restartable sequence for good.  It may sleep inside the one
 * call that matters; but if the freezer holds the thread, that call is over.
 */
static enum task_state task_sleeping(pid_t pid, pid_t tid)
{
	char text[128];
	long nr;
	char *end;

	if (task_read(pid, tid, "syscall", text, sizeof(text)) <= 0)
		return TASK_UNKNOWN;
	nr = strtol(text, &end, 10);
	if (end == text) /* the file says "running" */
		return TASK_UNKNOWN;
	if (nr != SYS_process_vm_writev && nr != SYS_process_vm_readv)
		return TASK_ASLEEP;
	if (task_read(pid, tid, "wchan", text, sizeof(text)) > 0 &&
	    (strstr(text, "do_freezer_trap") || strstr(text, "__refrigerator")))
		return TASK_ASLEEP;
	return TASK_IN_CALL;
}

/*
 * The letter changes before the thread leaves the processor.  A thread that something wakes in
 * between has not left its restartable sequence.  Where /proc does not tell, we rely on the letter.
 */
static enum task_state task_stopping(pid_t pid, pid_t tid)
{
	char text[128];

	if (task_read(pid, tid, "syscall", text, sizeof(text)) > 0 &&
	    !strncmp(text, "running", strlen("running")))
		return TASK_UNKNOWN;
	return TASK_STOPPED;
}

enum task_state task_look(pid_t pid, pid_t tid, uint64_t began, uint64_t mask, uint64_t *ran_ms)
{
	uint64_t now;

	if (pid <= 0 || tid <= 0)
		return TASK_GONE;
	now = task_began(pid);
	if (now && (now & mask) != began)
		return TASK_GONE;
	switch (thread_state(pid, tid, ran_ms)) {
	case 0:
		return is_gone(pid, tid) ? TASK_GONE : TASK_UNKNOWN;
	case 'Z':
	case 'X':
		return TASK_GONE;
	case 'T':
	case 't':
		return task_stopping(pid, tid);
	case 'R':
		return TASK_RUNS;
	case 'S':
	case 'D':
		return task_sleeping(pid, tid);
	default:
		return TASK_UNKNOWN;
	}
}

bool task_is_runnable(pid_t pid, pid_t tid)
{
	uint64_t ran_ms;

	return thread_state(pid, tid, &ran_ms) == 'R';
}

bool task_beside_is_runnable(pid_t tid)
{
	const char *state = NULL;
	char name[64], stat[1024];

	snprintf(name, sizeof(name), "self/task/%d/stat", (int)tid);
	if (proc_file_read_bare(name, stat, sizeof(stat)) > 0)
		state = stat_after_name(stat);
	return state && *state == 'R';
}

static bool thread_goes_on(pid_t pid, pid_t tid)
{
	uint64_t ran_ms;
	char state = thread_state(pid, tid, &ran_ms);

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
