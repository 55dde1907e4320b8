// SPDX-License-Identifier: BSD-2-Clause
/* What /proc says of other processes; see proc.h. */
#include "reach/proc.h"

#include "base/descriptor.h"
#include "base/spin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The descriptor of /proc, and a second one of it: we close the second for a moment when the
 * program has no other number left. */
static struct hidden proc = HIDDEN_NONE, spare = HIDDEN_NONE;
static unsigned users;
static struct spin lock; /* protects the three */

static struct hidden hidden_read(const struct hidden *h)
{
	struct hidden now;

	spin_lock(&lock);
	now = *h;
	spin_unlock(&lock);
	return now;
}

static struct hidden hidden_replace(struct hidden *h, struct hidden with)
{
	struct hidden before;

	spin_lock(&lock);
	before = *h;
	*h = with;
	spin_unlock(&lock);
	return before;
}

static struct hidden open_proc(void)
{
	return hidden_keep(
		(int)syscall(SYS_openat, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

void proc_file_keep(void)
{
	bool first;

	spin_lock(&lock);
	first = !users++;
	spin_unlock(&lock);
	if (!first)
		return;
	(void)hidden_replace(&proc, open_proc());
	(void)hidden_replace(&spare, open_proc());
}

void proc_file_drop(void)
{
	struct hidden a = HIDDEN_NONE, b = HIDDEN_NONE;

	spin_lock(&lock);
	if (users && !--users) {
		a = proc;
		b = spare;
		proc = spare = HIDDEN_NONE;
	}
	spin_unlock(&lock);
	hidden_close(&a);
	hidden_close(&b);
}

void proc_file_fork_child(void)
{
	lock = (struct spin){0};
	proc = spare = HIDDEN_NONE;
	users = 0;
}

static int proc_file_open_bare(const char *name)
{
	char path[96];
	long fd;

	snprintf(path, sizeof(path), "/proc/%s", name);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

static int proc_file_open(const char *name)
{
	const struct hidden dir = hidden_read(&proc);
	long fd;

	if (!hidden_ours(&dir))
		return proc_file_open_bare(name);
	fd = syscall(SYS_openat, dir.fd, name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

static ssize_t read_whole(int fd, char *text, size_t size)
{
	ssize_t n = syscall(SYS_read, fd, text, size - 1);

	if (n < 0)
		n = -errno;
	syscall(SYS_close, fd);
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

/* If another thread of the program takes the number meanwhile, the spare is lost, and no later call
 * can read this way. */
static ssize_t read_by_spare(const char *name, char *text, size_t size)
{
	struct hidden mine = hidden_replace(&spare, HIDDEN_NONE);
	const struct hidden dir = hidden_read(&proc);
	ssize_t n = -EMFILE;
	int fd;

	if (!hidden_ours(&mine))
		return n;
	hidden_close(&mine);
	fd = proc_file_open(name);
	n = fd < 0 ? fd : read_whole(fd, text, size);
	if (hidden_ours(&dir))
		mine = hidden_keep((int)syscall(SYS_fcntl, dir.fd, F_DUPFD_CLOEXEC, 0));
	(void)hidden_replace(&spare, mine);
	return n;
}

/* Reads a small file whole, by its name below /proc, and appends a zero byte.  Returns its length,
 * or negative errno. */
static ssize_t proc_file_read(const char *name, char *text, size_t size)
{
	int fd = proc_file_open(name);

	text[0] = '\0';
	if (fd >= 0)
		return read_whole(fd, text, size);
	return fd == -EMFILE || fd == -ENFILE ? read_by_spare(name, text, size) : fd;
}

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

/* The capabilities stand behind the list of groups in the file.  If a process has hundreds of
 * groups, the text ends before them and we know nothing. */
#define STATUS_BYTES 4096u

struct rights {
	unsigned uid[3], gid[3]; /* real, effective, saved */
	uint64_t capabilities;	 /* those that it may take */
};

static bool rights_line(const char *status, const char *key, unsigned id[3])
{
	const char *at = strstr(status, key);

	return at && sscanf(at + strlen(key), "%u %u %u", &id[0], &id[1], &id[2]) == 3;
}

/* The program's name stands first, and no line can begin inside it (proc(5)). */
static bool rights_read(const char *name, struct rights *r)
{
	static const char caps[] = "\nCapPrm:";
	char status[STATUS_BYTES];
	const char *at;
	unsigned long long set;

	if (proc_file_read(name, status, sizeof(status)) <= 0)
		return false;
	at = strstr(status, caps);
	if (!at || sscanf(at + strlen(caps), "%llx", &set) != 1)
		return false;
	r->capabilities = set;
	return rights_line(status, "\nUid:", r->uid) && rights_line(status, "\nGid:", r->gid);
}

/* Capabilities belong to a user namespace: a process that makes a namespace for itself has them all
 * there.  A system without such namespaces says 0 for both. */
static bool rights_alike(pid_t pid)
{
	struct stat ours = {0}, theirs = {0};
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return stat("/proc/thread-self/ns/user", &ours) == stat(path, &theirs) &&
	       ours.st_ino == theirs.st_ino;
}

bool rights_cover_ours(pid_t pid)
{
	struct rights ours, theirs;
	char name[32];

	snprintf(name, sizeof(name), "%d/status", (int)pid);
	if (!rights_alike(pid) || !rights_read("self/status", &ours) || !rights_read(name, &theirs))
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (theirs.uid[0] != ours.uid[i] || theirs.gid[0] != ours.gid[i])
			return false;
	return !(ours.capabilities & ~theirs.capabilities);
}
