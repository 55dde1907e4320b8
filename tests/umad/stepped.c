// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program is taken through each operation of umad and issm files instruction by instruction, on a host with two
 * ports.  At some of them it is killed: all that it had must be free again.  At others it stands: programs with
 * other files go on, and so does it when it may.
 * Usage: stepped_mads POINTS SEED     so many instructions of each operation, of each fate
 */
#include "victim.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steps/walk.h"
#include "verbs_device.h"

#define NAPS (WAIT_MS / 10) /* of 10 ms */

enum fate { KILLED, STANDS, FATES };

static unsigned seed;

/* walk.c ends so what it cannot go on with. */
void device_die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "; seed %u\n", seed);
	exit(1);
}

static void live(const struct operation *o)
{
	struct victim v = victim_open();

	walk_begin();
	o->run(&v);
	walk_end();
	_exit(0);
}

static void victim_begin(struct walk *w, const struct operation *o)
{
	pid_t pid = fork();

	must(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0)
		live(o);
	walk_start(w, pid, WALK_OVER);
}

static void victim_ends(const struct walk *w, int wanted, const char *what)
{
	int status;

	must(walk_wait(w->pid, &status), "%s: it does not end", what);
	must(status == wanted, "%s, point %llu, seed %u: it ended with %#x", what,
	     (unsigned long long)w->points, seed, (unsigned)status);
}

/* What is the program's is free again, soon after its end. */
static void nothing_is_left(const struct operation *o, uint64_t point)
{
	for (unsigned nap = 0; !all_is_free(); nap++) {
		must(nap < NAPS, "%s, point %llu, seed %u: something of it is left", o->name,
		     (unsigned long long)point, seed);
		usleep(10000);
	}
}

/* Those who have other files. */
static void others_go_on(uint64_t tid)
{
	int fd = port_file(1);
	struct letter l = letter_to_self(port_agent(fd, agent_of(CLASS_DIRECTED)), tid), got;

	letter_is_sent(fd, &l);
	got = letter_received(fd);
	must((uint32_t)letter_tid(&got) == tid && !got.status, "another letter");
	letter_free(&got);
	letter_free(&l);
	port_close(fd);
}

static uint64_t points_of(const struct operation *o)
{
	struct walk w;

	victim_begin(&w, o);
	walk_to(&w, UINT64_MAX);
	walk_finish(&w);
	victim_ends(&w, 0, o->name);
	nothing_is_left(o, w.points);
	return w.points;
}

static void victim_meets(const struct operation *o, enum fate fate, uint64_t point)
{
	struct walk w;

	victim_begin(&w, o);
	walk_to(&w, point);
	if (fate == KILLED) {
		must(!kill(w.pid, SIGKILL), "kill: %s", strerror(errno));
		victim_ends(&w, SIGKILL, o->name);
	} else {
		others_go_on(point);
		walk_finish(&w);
		victim_ends(&w, 0, o->name);
	}
	nothing_is_left(o, point);
}

static void operation_is_walked(const struct operation *o, unsigned points)
{
	const uint64_t all = points_of(o);
	const uint64_t stride = all / points ? all / points : 1;

	printf("%s: %llu instructions\n", o->name, (unsigned long long)all);
	fflush(stdout);
	for (enum fate fate = 0; fate < FATES; fate++)
		for (unsigned i = 0; i < points; i++)
			victim_meets(o, fate, 1 + i * stride + (uint64_t)rand() % stride);
}

int main(int argc, char **argv)
{
	unsigned points = argc == 3 ? (unsigned)atoi(argv[1]) : 0;

	must(points, "see the head of stepped.c");
	seed = (unsigned)atoi(argv[2]);
	srand(seed);
	walk_ticks();
	for (unsigned i = 0; i < OPERATIONS; i++)
		if (operations[i].ends)
			operation_is_walked(&operations[i], points);
	return 0;
}
