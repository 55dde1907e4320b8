// SPDX-License-Identifier: BSD-2-Clause
/* See walk.h. */
#include "walk.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <linux/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_device.h"

#define REPETITIONS 4096u /* of one instruction (rep movs) for one more point */
#define DR7_FIRST   1ul	  /* the first debug register stops where it is executed */

#define WAIT_TICKS 60u /* of a second each */

#define ABORT_STEPS 3u /* of what runs when a sequence is aborted */

/* struct rseq of the kernel's interface, as far as it matters here. */
#define RSEQ_CS_AT 8u

struct sequence {
	uint32_t version, flags;
	uint64_t start, length, abort;
};

extern const char walk_begun[], walk_ended[];

/* ---- the child ---- */

/* The addresses behind the traps are known to the parent, which is the same program. */
__attribute__((noinline, noclone)) void walk_begin(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		device_die("PTRACE_TRACEME: %m");
	__asm__ volatile("int3\n.globl walk_begun\nwalk_begun:" ::: "memory");
}

__attribute__((noinline, noclone)) void walk_end(void)
{
	__asm__ volatile("int3\n.globl walk_ended\nwalk_ended:" ::: "memory");
}

/* ---- the parent ---- */

static void tick(int sig)
{
	(void)sig;
}

void walk_ticks(void)
{
	const struct itimerval each = {{1, 0}, {1, 0}};
	const struct sigaction action = {.sa_handler = tick}; /* calls do not begin again */

	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &each, NULL))
		device_die("no timer: %m");
}

static void print_line(int pid, const char *tid, const char *name)
{
	char path[300], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", pid, tid, name);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		printf(" %s %s", name, line);
	}
	if (f)
		fclose(f);
}

static void print_threads(pid_t pid)
{
	const struct dirent *task;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (task = readdir(tasks))) {
		if (!isdigit((unsigned char)task->d_name[0]))
			continue;
		printf("  thread %s:", task->d_name);
		print_line(pid, task->d_name, "comm");
		print_line(pid, task->d_name, "wchan");
		print_line(pid, task->d_name, "syscall");
		printf("\n");
	}
	if (tasks)
		closedir(tasks);
}

/* Ticks are counted and not the clock looked at: if everything stood still for a while, the child
 * gets its time before we give up. */
bool walk_wait(pid_t pid, int *status)
{
	for (unsigned i = 0; i < WAIT_TICKS; i++) {
		if (waitpid(pid, status, __WALL) == pid)
			return true;
		if (errno != EINTR)
			device_die("waitpid: %m");
	}
	print_threads(pid);
	return false;
}

/* The thread that stops and the one that waits for it change places faster on one CPU. */
static void share_cpu(pid_t pid)
{
	int cpu = sched_getcpu();
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	(void)sched_setaffinity(pid, sizeof(set), &set);
}

static void leave_cpu(pid_t pid)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	(void)sched_setaffinity(0, sizeof(set), &set);
	(void)sched_setaffinity(pid, sizeof(set), &set);
}

static void read_memory(const struct walk *w, uint64_t at, void *to, size_t bytes)
{
	struct iovec local = {to, bytes};
	struct iovec remote = {(void *)(uintptr_t)at, bytes};

	if (process_vm_readv(w->pid, &local, 1, &remote, 1, 0) != (ssize_t)bytes)
		device_die("memory of the traced process at %#" PRIx64 ": %m", at);
}

static void set_debug(const struct walk *w, unsigned n, uint64_t value)
{
	if (ptrace(PTRACE_POKEUSER, w->pid, offsetof(struct user, u_debugreg) + n * 8, value))
		device_die("debug register %u: %m", n);
}

static void look_at_stop(struct walk *w, bool was_in_call)
{
	uint64_t rip = (uint64_t)ptrace(
		PTRACE_PEEKUSER, w->pid,
		offsetof(struct user, regs) + offsetof(struct user_regs_struct, rip), NULL);

	/* The entry and the exit of a system call are two places with one address. */
	w->repeated = rip == w->rip && !was_in_call ? w->repeated + 1 : 0;
	w->points += w->repeated % REPETITIONS == 0;
	w->rip = rip;
	w->ended = rip == (uintptr_t)walk_ended;
}

/* One stop further; other signals than the tracer's own reach the child. */
static void advance_child(struct walk *w, int how)
{
	int signal = 0, status;
	bool was_in_call;

	for (;;) {
		if (ptrace((enum __ptrace_request)how, w->pid, NULL, (long)signal))
			device_die("ptrace %d: %m", how);
		if (!walk_wait(w->pid, &status)) {
			char place[512];

			walk_place(w, place, sizeof(place));
			fflush(stdout);
			device_die("the traced process does not go on from %s", place);
		}
		if (!WIFSTOPPED(status))
			device_die("the traced process ended with %#x", (unsigned)status);
		signal = WSTOPSIG(status);
		if (signal == SIGTRAP || signal == (SIGTRAP | 0x80))
			break;
		if (signal == SIGSTOP || signal == SIGCONT)
			signal = 0;
	}
	was_in_call = w->in_call;
	w->in_call = !was_in_call && WSTOPSIG(status) == (SIGTRAP | 0x80);
	look_at_stop(w, was_in_call);
}

void walk_start(struct walk *w, pid_t pid, enum walk_style style)
{
	struct ptrace_rseq_configuration rseq;
	int status;

	*w = (struct walk){.pid = pid, .style = style};
	if (!walk_wait(pid, &status))
		device_die("the process to trace does not begin");
	if (!WIFSTOPPED(status))
		device_die("the process to trace ended with %#x", (unsigned)status);
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD))
		device_die("PTRACE_SETOPTIONS: %m");
	if (ptrace((enum __ptrace_request)PTRACE_GET_RSEQ_CONFIGURATION, pid, sizeof(rseq),
		   &rseq) == sizeof(rseq))
		w->rseq = rseq.rseq_abi_pointer;
	share_cpu(pid);
	look_at_stop(w, false);
	if (w->rip != (uintptr_t)walk_begun)
		device_die("the process to trace stops at %#" PRIx64, w->rip);
	w->points = 0;
}

/* The restartable sequence that the child stands in. */
static bool in_sequence(const struct walk *w, struct sequence *s)
{
	uint64_t at;

	if (!w->rseq)
		return false;
	read_memory(w, w->rseq + RSEQ_CS_AT, &at, sizeof(at));
	if (!at)
		return false;
	read_memory(w, at, s, sizeof(*s));
	return w->rip - s->start < s->length;
}

static void break_at(const struct walk *w, uint64_t address)
{
	set_debug(w, 7, 0);
	set_debug(w, 0, address);
	set_debug(w, 7, address ? DR7_FIRST : 0);
}

static bool child_breaks(pid_t pid)
{
	struct walk w = {0};

	walk_start(&w, pid, WALK_INTO);
	leave_cpu(pid);
	break_at(&w, (uintptr_t)walk_end);
	advance_child(&w, PTRACE_CONT);
	return w.rip == (uintptr_t)walk_end;
}

/* Some hypervisors keep the debug registers and never stop there. */
bool walk_can_break(void)
{
	static enum { UNKNOWN, NO, YES } known;
	int status;
	pid_t pid;

	if (known != UNKNOWN)
		return known == YES;
	pid = fork();
	if (pid < 0)
		device_die("fork: %m");
	if (!pid) {
		walk_begin();
		walk_end();
		_exit(0);
	}
	known = child_breaks(pid) ? YES : NO;
	kill(pid, SIGKILL);
	if (!walk_wait(pid, &status))
		device_die("a child that was killed does not end");
	return known == YES;
}

/*
 * The stop that has shown the sequence aborts it.  The next attempt runs at full speed, and stops
 * where it makes a system call and where it ends.
 */
static void pass_sequence(struct walk *w, const struct sequence *s, uint64_t at)
{
	uint64_t end = s->start + s->length;

	w->sequences++;
	break_at(w, s->abort);
	advance_child(w, PTRACE_CONT);
	break_at(w, 0);
	/* Perhaps past the end, which is no second time the sequence's end. */
	for (unsigned i = 0; i < ABORT_STEPS && !w->ended; i++)
		advance_child(w, PTRACE_SINGLESTEP);
	break_at(w, end);
	while (w->points < at && !w->ended) {
		advance_child(w, PTRACE_SYSCALL);
		w->calls += w->in_call;
		/* At the entry of a system call that ends the sequence the address is that, too. */
		if (w->rip == end && !w->in_call)
			break;
	}
	break_at(w, 0);
}

/*
 * What the C library does between a line of text and the caller's variables is nobody else's
 * business: one point.  Of the list of mappings it takes a million instructions.
 */
static bool reads_text(const struct walk *w)
{
	static const char *const names[] = {
		"__isoc99_sscanf",
		"__isoc23_sscanf",
		"fgets",
		"strtok_r",
	};
	static uintptr_t places[sizeof(names) / sizeof(*names)];

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!places[i])
			places[i] = (uintptr_t)dlsym(RTLD_DEFAULT, names[i]);
		if (places[i] && w->rip == places[i])
			return true;
	}
	return false;
}

/* The child stands at the function's first instruction.  Without breakpoints this takes a second. */
static void pass_function(struct walk *w)
{
	uint64_t sp = (uint64_t)ptrace(
		PTRACE_PEEKUSER, w->pid,
		offsetof(struct user, regs) + offsetof(struct user_regs_struct, rsp), NULL);
	int how = walk_can_break() ? PTRACE_CONT : PTRACE_SINGLESTEP;
	uint64_t points = w->points, back;

	read_memory(w, sp, &back, sizeof(back));
	break_at(w, back);
	while (w->rip != back)
		advance_child(w, how);
	break_at(w, 0);
	w->points = points + 1;
}

void walk_to(struct walk *w, uint64_t at)
{
	struct sequence s;

	while (!w->ended && w->points < at) {
		if (w->style == WALK_OVER && in_sequence(w, &s))
			pass_sequence(w, &s, at);
		else if (reads_text(w))
			pass_function(w);
		else
			advance_child(w, PTRACE_SINGLESTEP);
		if (w->style == WALK_INTO && w->rseq && in_sequence(w, &s))
			w->sequences++;
	}
	leave_cpu(w->pid);
}

void walk_finish(struct walk *w)
{
	while (!w->ended)
		advance_child(w, PTRACE_CONT);
	if (ptrace(PTRACE_DETACH, w->pid, NULL, NULL))
		device_die("PTRACE_DETACH: %m");
}

static void place_of_address(pid_t pid, uint64_t rip, char *text, size_t size)
{
	char path[64], line[512];
	FILE *maps;

	snprintf(text, size, "%#" PRIx64, rip);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		uint64_t from, to, offset;
		int name = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &from, &to,
			   &offset, &name) == 3 &&
		    name && rip >= from && rip < to) {
			line[strcspn(line, "\n")] = 0;
			snprintf(text, size, "%s+%#" PRIx64, line + name, rip - from + offset);
			break;
		}
	}
	if (maps)
		fclose(maps);
}

void walk_place(const struct walk *w, char *text, size_t size)
{
	place_of_address(w->pid, w->rip, text, size);
}

/* Where the device's library was called from, as far as the top of the stack tells. */
static void callers_of(pid_t pid, uint64_t rsp, char *text, size_t size)
{
	uint64_t words[256];
	struct iovec local = {words, sizeof(words)};
	struct iovec remote = {(void *)(uintptr_t)rsp, sizeof(words)};
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*words); i++) {
		size_t used = strlen(text);
		char caller[160];
		const char *name;

		place_of_address(pid, words[i], caller, sizeof(caller));
		name = strstr(caller, "libsofthca-preload");
		if (name && used + strlen(name) + 4 < size)
			snprintf(text + used, size - used, " < %s", name);
	}
}

void walk_place_of(pid_t pid, char *text, size_t size)
{
	struct user_regs_struct regs;
	int status;

	snprintf(text, size, "nowhere");
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) ||
	    waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		return;
	if (!ptrace(PTRACE_GETREGS, pid, NULL, &regs)) {
		place_of_address(pid, regs.rip, text, size);
		callers_of(pid, regs.rsp, text, size);
	}
	(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
}
