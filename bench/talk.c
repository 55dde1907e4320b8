// SPDX-License-Identifier: BSD-2-Clause
#include "talk.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_device.h"

void talk_get(int fd, void *to, size_t n)
{
	if (recv(fd, to, n, MSG_WAITALL) != (ssize_t)n)
		_exit(0);
}

void talk_put(int fd, const void *from, size_t n)
{
	if (send(fd, from, n, MSG_NOSIGNAL) != (ssize_t)n)
		device_die("the other process is gone");
}

void talk_pin(unsigned number)
{
	cpu_set_t all, own;
	unsigned seen = 0;

	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		return;
	CPU_ZERO(&own);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && seen++ == number)
			CPU_SET(cpu, &own);
	if (sched_setaffinity(0, sizeof(own), &own))
		device_die("sched_setaffinity: %m");
}

pid_t talk_fork(void)
{
	pid_t child = fork();

	if (child < 0)
		device_die("fork: %m");
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	talk_pin(!!child);
	return child;
}

void talk_end(pid_t child)
{
	if (kill(child, SIGKILL) || waitpid(child, NULL, 0) != child)
		device_die("the other process: %m");
}
