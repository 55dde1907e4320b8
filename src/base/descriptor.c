// SPDX-License-Identifier: BSD-2-Clause
#include "base/descriptor.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINK_BYTES 40

static void link_write(char link[static LINK_BYTES], pid_t pid, int fd)
{
	if (pid)
		snprintf(link, LINK_BYTES, "/proc/%d/fd/%d", (int)pid, fd);
	else if (fd == AT_FDCWD)
		snprintf(link, LINK_BYTES, "/proc/thread-self/cwd");
	else
		snprintf(link, LINK_BYTES, "/proc/thread-self/fd/%d", fd);
}

int descriptor_reopen(pid_t pid, int fd, int flags)
{
	char link[LINK_BYTES];

	link_write(link, pid, fd);
	return (int)syscall(SYS_openat, AT_FDCWD, link, flags | O_CLOEXEC);
}

ssize_t descriptor_name(int fd, char *buf, size_t size)
{
	char link[LINK_BYTES];

	link_write(link, 0, fd);
	return syscall(SYS_readlinkat, AT_FDCWD, link, buf, size);
}
