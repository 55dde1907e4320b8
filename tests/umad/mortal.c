// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program is killed in each operation of umad and issm files, over and over, on a host with two ports;
 * each time its agents and its place at the issm files must be free again.
 * Usage: mortal_mads ROUNDS SEED     so many kills in each operation
 */
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAPS	   (WAIT_MS / 10) /* of 10 ms */
#define READY_NAPS 300000u	  /* of 100 us */
#define MOMENTS	   3000u	  /* us in which a program is killed that has begun */

static void live(unsigned operation, atomic_bool *ready)
{
	struct victim v = victim_open();

	atomic_store(ready, true);
	for (;;)
		operations[operation].run(&v);
}

static void victim_dies(unsigned operation, unsigned seed, atomic_bool *ready)
{
	unsigned begun = (unsigned)rand() % 4, nap = 0;
	int held = issm_file(2, 0), status;
	pid_t pid;

	must(held >= 0, "issm: %s", strerror(-held));
	atomic_store(ready, false);
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		setpgid(0, 0);
		live(operation, ready);
	}
	setpgid(pid, pid);
	/* One in four while it starts. */
	for (; begun && !atomic_load(ready); nap++) {
		must(nap < READY_NAPS, "operation %u: it does not begin", operation);
		usleep(100);
	}
	usleep((useconds_t)rand() % MOMENTS);
	must(kill(-pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid, "kill");
	must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	     "operation %u, seed %u: it ended with %#x", operation, seed, status);
	close(held);
	for (nap = 0; !all_is_free(); nap++) {
		must(nap < NAPS, "operation %u, seed %u: something of it is left", operation, seed);
		usleep(10000);
	}
}

int main(int argc, char **argv)
{
	unsigned rounds = argc == 3 ? (unsigned)atoi(argv[1]) : 0;
	unsigned seed = rounds ? (unsigned)atoi(argv[2]) : 0;
	atomic_bool *ready = mmap(NULL, sizeof(*ready), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(rounds && ready != MAP_FAILED, "see the head of mortal.c");
	srand(seed);
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned i = 0; i < OPERATIONS; i++)
			victim_dies(i, seed, ready);
	return 0;
}
