// SPDX-License-Identifier: BSD-2-Clause
#include "talk.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
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
