// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a socketpair between two processes does, to compare MADs with.
 * Usage: sockets COUNT     messages of a MAD with its header, to and fro: microseconds of one
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES 320

static double clock_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void failed(const char *what)
{
	perror(what);
	exit(1);
}

static void message_read(int fd)
{
	char bytes[MESSAGE_BYTES];

	if (read(fd, bytes, sizeof(bytes)) != sizeof(bytes))
		failed("read");
}

static void message_written(int fd)
{
	const char bytes[MESSAGE_BYTES] = {0};

	if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
		failed("write");
}

/* Seconds of so many. */
static double round_trips(unsigned times)
{
	int pair[2];
	double begin;
	pid_t other;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		failed("socketpair");
	other = fork();
	if (other < 0)
		failed("fork");
	for (unsigned i = 0; i < times && other == 0; i++) {
		message_read(pair[1]);
		message_written(pair[1]);
	}
	if (other == 0)
		_exit(0);
	begin = clock_seconds();
	for (unsigned i = 0; i < times; i++) {
		message_written(pair[0]);
		message_read(pair[0]);
	}
	begin = clock_seconds() - begin;
	waitpid(other, NULL, 0);
	return begin;
}

int main(int argc, char **argv)
{
	unsigned n = argc == 2 ? (unsigned)atoi(argv[1]) : 0;

	if (!n)
		return 2;
	printf("%.3f\n", round_trips(n) / n * 1e6);
	return 0;
}
