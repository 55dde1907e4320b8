// SPDX-License-Identifier: BSD-2-Clause
/* See guarded.h. */
#include "tool/guarded.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* Runs in the child, and says when it has come to the end. */
static _Noreturn void guarded_child(void (*work)(void *arg), void *arg, int out, pid_t parent)
{
	char end = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	work(arg);
	_exit(write(out, &end, 1) == 1 ? 0 : 1);
}

/* Tells whether the child comes to the end before the time is over. */
static bool guarded_wait(int in, int milliseconds)
{
	uint64_t until = clock_ns() + (uint64_t)milliseconds * 1000000u;
	struct pollfd p = {.fd = in, .events = POLLIN};
	char end;

	for (;;) {
		uint64_t now = clock_ns();
		int left = now < until ? (int)((until - now) / 1000000u) + 1 : 0;
		int n = poll(&p, 1, left);

		if (n > 0)
			return read(in, &end, 1) == 1;
		if (n < 0 && errno != EINTR)
			return false;
		if (!left)
			return false;
	}
}

bool guarded_run(void (*work)(void *arg), void *arg, int milliseconds)
{
	pid_t self = getpid(), pid;
	int ends[2];
	bool done;

	if (pipe(ends))
		return false;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(ends[0]);
		guarded_child(work, arg, ends[1], self);
	}
	close(ends[1]);
	done = pid > 0 && guarded_wait(ends[0], milliseconds);
	close(ends[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		/* We do not wait for a child that does not even die of that. */
		waitpid(pid, NULL, done ? 0 : WNOHANG);
	}
	return done;
}
