// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file's request to the daemon needs a descriptor for the moment, and the program may have taken
 * every number that it is allowed.  A child that shares all memory but has its own table of
 * descriptors has room there, because it closes copies or because its limit is higher.  This thread
 * waits meanwhile, so to the program it is one call.  The child makes system calls directly: those
 * of libc are interposed, or keep books for the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hidden.h"
#include "driver/umad/device.h"

#define STACK_BYTES (256u << 10)
#define ROOM	    2 /* a connection, and what comes with the answer */
#define BIT(signum) (1ull << ((signum)-1))

struct crowded {
	ssize_t (*call)(void *arg);
	void *arg;
	int keep;
	ssize_t ret;
};

/* Closes copies of the program's descriptors, none of which is a device's; the originals stay. */
static void room_by_copies(int keep)
{
	for (int fd = 0, closed = 0; closed < ROOM && (unsigned)fd < CDEV_LOW_FDS; fd++)
		if (fd != keep && !cdev_table_load(fd) && !hidden_is(fd))
			closed += !syscall(SYS_close, fd);
}

static int crowded_child(void *arg)
{
	struct crowded *c = arg;
	struct rlimit limit;

	if (!syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) &&
	    limit.rlim_max >= limit.rlim_cur + ROOM) {
		limit.rlim_cur += ROOM;
		syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL);
	}
	room_by_copies(c->keep);
	c->ret = c->call(c->arg);
	return 0;
}

/*
 * Handlers of faults must run in the child, because copies from and to the program's memory count
 * on them; no other handlers may.
 */
static void child_run(struct crowded *c, char *stack)
{
	const uint64_t most = ~(BIT(SIGSEGV) | BIT(SIGBUS));
	uint64_t saved = 0;
	int pid;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &most, &saved, sizeof(most));
	pid = clone(crowded_child, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_FS, c);
	while (pid > 0 && syscall(SYS_wait4, pid, NULL, __WCLONE, NULL) < 0 && errno == EINTR)
		;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, sizeof(saved));
}

ssize_t umad_crowded(ssize_t (*call)(void *arg), void *arg, int keep)
{
	struct crowded c = {.call = call, .arg = arg, .keep = keep, .ret = -EMFILE};
	char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		return -EMFILE;
	child_run(&c, stack);
	munmap(stack, STACK_BYTES);
	return c.ret;
}

bool umad_has_room(int fd)
{
	int copies[ROOM], n = 0;

	while (n < ROOM && (copies[n] = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	for (int i = 0; i < n; i++)
		syscall(SYS_close, copies[i]);
	return n == ROOM;
}
