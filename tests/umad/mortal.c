// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program is killed in each operation of umad and issm files, over and over, on a host with two ports;
 * each time its agents and its place at the issm files must be free again.
 * Usage: mortal_mads ROUNDS SEED     so many kills in each operation
 */
#include "checklist.h"

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

#define LONG_DATA  100000u
#define NAPS	   (WAIT_MS / 10) /* of 10 ms */
#define READY_NAPS 300000u	  /* of 100 us */
#define MOMENTS	   3000u	  /* us in which a program is killed that has begun */

/* What the victim does, which has both ends of a pair open and registered. */
struct victim {
	struct pair p;
	uint16_t lid;
	uint64_t tid;
};

static int issm_file(unsigned port, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/issm%u", port - 1);
	fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

static void opens(struct victim *v)
{
	(void)v;
	port_close(port_file(1));
}

static void registers(struct victim *v)
{
	struct agent a = server_of(CLASS_PLAIN, METHOD_GET);

	must(port_unregister(v->p.client, port_agent(v->p.client, a)) == 0, "unregister");
}

/* Nobody answers, and nobody reads that. */
static void writes(struct victim *v)
{
	struct letter l = letter_to(v->lid, CLASS_VENDOR, METHOD_GET, 0, v->tid++);

	l.id = v->p.client_id;
	l.timeout_ms = 1;
	l.retries = 1;
	(void)port_send(v->p.client, &l);
	letter_free(&l);
}

static void writes_long(struct victim *v)
{
	struct letter l = letter_with_data(v->lid, v->tid++, LONG_DATA);

	l.id = v->p.client_id;
	l.timeout_ms = 1000;
	(void)port_send(v->p.client, &l);
	letter_free(&l);
}

static void reads_long(struct victim *v)
{
	struct letter got;

	writes_long(v);
	must(port_receive(v->p.server, &got, LONG_DATA + MAD_BYTES) == 0, "receive");
	letter_free(&got);
}

static void reads(struct victim *v)
{
	struct letter l =
		letter_to_self(port_agent(v->p.client, agent_of(CLASS_DIRECTED)), v->tid++);
	struct letter got;

	letter_is_sent(v->p.client, &l);
	got = letter_received(v->p.client);
	port_unregister(v->p.client, l.id);
	letter_free(&l);
	letter_free(&got);
}

/* For ever. */
static void waits_for_mads(struct victim *v)
{
	uint8_t bytes[NEW_HEADER + MAD_BYTES];

	must(fcntl(v->p.server, F_SETFL, 0) == 0, "fcntl");
	(void)!read(v->p.server, bytes, sizeof(bytes));
}

static void takes_issm(struct victim *v)
{
	int fd = issm_file(1, 0);

	(void)v;
	must(fd >= 0, "issm: %s", strerror(-fd));
	close(fd);
}

/* The other process holds it. */
static void waits_for_issm(struct victim *v)
{
	(void)v;
	issm_file(2, 0);
}

/* Both processes have the files, and both are killed. */
static void forks(struct victim *v)
{
	pid_t child = fork();

	if (child == 0) {
		writes(v);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void (*const operations[])(struct victim *) = {
	opens, registers,      writes,	   writes_long,	   reads_long,
	reads, waits_for_mads, takes_issm, waits_for_issm, forks,
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static void live(unsigned operation, atomic_bool *ready)
{
	struct victim v = {.p = pair_open(1), .lid = lid_of(2), .tid = 1};

	atomic_store(ready, true);
	for (;;)
		operations[operation](&v);
}

/* ---- what must be free again ---- */

/* What is taken to see it is given back by requests, which are over when they return; a close is seen
 * when the daemon looks. */
static bool agent_is_free(unsigned port, uint32_t class, uint8_t method)
{
	struct agent a = server_of(class, method);
	int fd = port_file(port), id = port_register(fd, &a);

	if (id >= 0)
		must(port_unregister(fd, (uint32_t)id) == 0, "unregister");
	port_close(fd);
	return id >= 0;
}

static bool issm_is_free(unsigned port)
{
	int fd = issm_file(port, O_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool all_is_free(void)
{
	return !issm_bit_of(1) && !issm_bit_of(2) && agent_is_free(2, CLASS_VENDOR, METHOD_SEND) &&
	       agent_is_free(2, CLASS_VENDOR, METHOD_GET) &&
	       agent_is_free(1, CLASS_PLAIN, METHOD_GET) && issm_is_free(1) && issm_is_free(2);
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
