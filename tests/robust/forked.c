// SPDX-License-Identifier: BSD-2-Clause
/*
 * forked DEVICE: a queue pair connected with itself keeps writing and comparing while the process
 * forks: children that end at once, that execute a program, that use a device of their own, and
 * that try the parent's.  The parent's traffic goes on; each child ends by itself.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define BYTES	 (64u << 10)
#define FORKS	 12u
#define LIMIT_MS 5000

_Noreturn static void wrong(const char *what)
{
	printf("wrong: %s\n", what);
	exit(1);
}

static void write_traffic(struct pair *p, uint32_t rounds)
{
	for (uint32_t i = 1; i <= rounds; i++) {
		uint64_t end = pair_now_ms() + LIMIT_MS;
		uint32_t n = i % 8 ? 64 : BYTES;
		struct ibv_wc wc;
		int got;

		memset(p->mem, (int)i, n);
		pair_write(p, i, 0, BYTES, n);
		while (!(got = ibv_poll_cq(p->cq, 1, &wc)))
			if (pair_now_ms() > end)
				wrong("a write does not complete");
		if (got < 0 || wc.status != IBV_WC_SUCCESS)
			wrong(ibv_wc_status_str(wc.status));
		if (memcmp(p->mem, p->mem + BYTES, n) != 0)
			wrong("other data");
	}
}

/* A child has no device until it opens one: what it inherited is refused, not shared. */
_Noreturn static void child(struct pair *p, const char *device, unsigned kind)
{
	struct pair own;

	alarm(20);
	switch (kind % 4) {
	case 0:
		_exit(0);
	case 1:
		execl("/bin/true", "true", (char *)NULL);
		_exit(9);
	case 2:
		pair_open(&own, device, &device_default_connection, 2 * BYTES);
		pair_alone(&own, &device_default_connection);
		write_traffic(&own, 50);
		pair_close(&own);
		_exit(0);
	default:
		/* Either outcome is right for the child, as long as it ends and harms nobody. */
		_exit(ibv_alloc_pd(p->port.ctx) && errno == 0);
	}
}

int main(int argc, char **argv)
{
	struct pair p;

	if (argc != 2)
		device_die("usage: forked DEVICE");
	pair_open(&p, argv[1], &device_default_connection, 2 * BYTES);
	pair_alone(&p, &device_default_connection);
	write_traffic(&p, 100);
	for (unsigned i = 0; i < FORKS; i++) {
		pid_t pid;
		int status = 0;

		fflush(stdout);
		pid = fork();
		if (pid < 0)
			device_die("fork: %m");
		if (!pid)
			child(&p, argv[1], i);
		/* While the child runs, and after it. */
		while (!waitpid(pid, &status, WNOHANG))
			write_traffic(&p, 10);
		if (status) {
			printf("wrong: child %u ended with 0x%x\n", i, status);
			return 1;
		}
		write_traffic(&p, 20);
	}
	pair_close(&p);
	printf("%u children\n", FORKS);
	return 0;
}
