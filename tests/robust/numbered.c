// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program of one thread that puts files at numbers of its choice is never told that the number is
 * busy (dup(2), EBUSY): it knows of no thread that opens files.  Here another thread does, without
 * end, as those of the device do now and then.
 *
 *	numbered DEVICE
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loopback.h"

#define TIMES 50000u

static _Atomic(int) end;

static void *open_files(void *arg)
{
	while (!atomic_load(&end)) {
		long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			syscall(SYS_close, fd);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct loopback l;
	pthread_t thread;
	int file, number;

	if (argc != 2)
		device_die("usage: numbered DEVICE");
	loopback_open(&l, argv[1]);
	file = open("/dev/null", O_RDWR | O_CLOEXEC);
	number = dup(file); /* the lowest that is free, which the thread takes, too */
	close(number);
	if (file < 0 || number < 0 || pthread_create(&thread, NULL, open_files, NULL))
		device_die("setting up: %m");
	for (unsigned i = 0; i < TIMES; i++) {
		if ((i % 2 ? dup2(file, number) : dup3(file, number, O_CLOEXEC)) != number)
			device_die("to %d, the %u. time: %m", number, i);
		close(number);
	}
	atomic_store(&end, 1);
	pthread_join(thread, NULL);
	loopback_close(&l);
	printf("%u files at one number\n", TIMES);
	return 0;
}
