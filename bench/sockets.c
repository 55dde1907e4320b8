// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a socketpair between two processes does, to compare MADs with.
 * Usage: sockets round COUNT     messages of a MAD with its header, to and fro: microseconds of one
 *        sockets stream BYTES    as one message, answered when it is there: MiB a second, best of 5
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES 320
#define TIMES	      5

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

static void bytes_read(int fd, char *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read(fd, bytes + at, n - at);

		if (got <= 0)
			failed("read");
		at += (size_t)got;
	}
}

static void bytes_written(int fd, const char *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = write(fd, bytes + at, n - at);

		if (got <= 0)
			failed("write");
		at += (size_t)got;
	}
}

/* One end sends 'there' bytes and gets 'back', so many times; the best time of one. */
static double exchange(int type, size_t there, size_t back, unsigned times, double *all)
{
	char *bytes = calloc(1, there);
	double best = 0, first = clock_seconds();
	int pair[2];
	pid_t other;

	if (!bytes || socketpair(AF_UNIX, type, 0, pair))
		failed("socketpair");
	other = fork();
	if (other < 0)
		failed("fork");
	for (unsigned i = 0; i < times && other == 0; i++) {
		bytes_read(pair[1], bytes, there);
		bytes_written(pair[1], bytes, back);
	}
	if (other == 0)
		_exit(0);
	for (unsigned i = 0; i < times; i++) {
		double begin = clock_seconds(), took;

		bytes_written(pair[0], bytes, there);
		bytes_read(pair[0], bytes, back);
		took = clock_seconds() - begin;
		if (i == 0 || took < best)
			best = took;
	}
	*all = clock_seconds() - first;
	waitpid(other, NULL, 0);
	free(bytes);
	return best;
}

int main(int argc, char **argv)
{
	unsigned n = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	double all;

	if (n && strcmp(argv[1], "round") == 0) {
		exchange(SOCK_SEQPACKET, MESSAGE_BYTES, MESSAGE_BYTES, n, &all);
		printf("%.3f\n", all / n * 1e6);
	} else if (n && strcmp(argv[1], "stream") == 0) {
		printf("%.1f\n", n / exchange(SOCK_STREAM, n, 1, TIMES, &all) / (1 << 20));
	} else {
		return 2;
	}
	return 0;
}
