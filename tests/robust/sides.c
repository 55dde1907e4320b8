// SPDX-License-Identifier: BSD-2-Clause
/* See sides.h. */
#include "sides.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs_device.h"

#define LIMIT_S	     50 /* nothing may hang */
#define APART_MAX_US 4000u
#define STOP_MAX_US  3000u

static struct {
	pid_t pid[SIDES];
	int control[SIDES];
	uint32_t random;
	unsigned seed;
} all;

uint32_t sides_draw(uint32_t below)
{
	all.random = all.random * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)all.random * below >> 32);
}

static void nap_us(uint32_t us)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

static void make_sockets(int pair[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		device_die("socketpair: %m");
}

void sides_start(void (*fn)(struct side *s), uint32_t seed)
{
	int between[2];

	all.seed = all.random = seed;
	make_sockets(between);
	fflush(stdout);
	for (unsigned i = 0; i < SIDES; i++) {
		int control[2];

		make_sockets(control);
		all.control[i] = control[0];
		(void)sides_draw(1);
		all.pid[i] = fork();
		if (all.pid[i] < 0)
			device_die("fork: %m");
		if (all.pid[i]) {
			close(control[1]);
			continue;
		}
		alarm(LIMIT_S);
		close(between[1 - i]);
		for (unsigned k = 0; k <= i; k++)
			close(all.control[k]);
		all.random ^= i << 16;
		fn(&(struct side){.number = i, .peer = between[i], .control = control[1]});
		exit(0);
	}
	close(between[0]);
	close(between[1]);
}

static int side_end(unsigned i, int killed_by)
{
	int status;

	if (waitpid(all.pid[i], &status, 0) != all.pid[i])
		device_die("waitpid: %m");
	/* The victim may have been faster than the signal. */
	if (!status || (killed_by && WIFSIGNALED(status) && WTERMSIG(status) == killed_by))
		return 0;
	fprintf(stderr, "seed %u: side %u ended with 0x%x\n", all.seed, i, (unsigned)status);
	return 1;
}

int sides_leave(void)
{
	int wrong = side_end(0, 0);

	return wrong | side_end(1, 0);
}

static void tell(unsigned i, enum sides_word word)
{
	char byte = (char)word;

	/* Who has ended need not be told. */
	(void)!send(all.control[i], &byte, 1, MSG_NOSIGNAL);
}

/* The sides say that they stand. */
static bool await_both(void)
{
	bool both = true;
	char byte;

	for (unsigned i = 0; i < SIDES; i++)
		both &= recv(all.control[i], &byte, 1, 0) == 1;
	return both;
}

int sides_stop(unsigned times)
{
	bool stand = await_both();

	for (unsigned n = 0; stand && n < times; n++) {
		unsigned i = sides_draw(SIDES);

		nap_us(sides_draw(APART_MAX_US));
		kill(all.pid[i], SIGSTOP);
		nap_us(sides_draw(STOP_MAX_US));
		kill(all.pid[i], SIGCONT);
	}
	tell(0, SIDES_QUIT);
	return sides_leave();
}

int sides_kill(unsigned victim)
{
	int wrong;

	if (await_both())
		nap_us(sides_draw(2 * APART_MAX_US));
	kill(all.pid[victim], SIGKILL);
	wrong = side_end(victim, SIGKILL);
	tell(1 - victim, SIDES_DEAD);
	return wrong | side_end(1 - victim, 0);
}

void sides_stand(const struct side *s)
{
	char byte = 0;

	if (send(s->control, &byte, 1, MSG_NOSIGNAL) != 1)
		device_die("side %u: the supervisor has gone", s->number);
}

void sides_await(const struct side *s, enum sides_word word)
{
	char byte = 0;

	while (byte != (char)word)
		if (recv(s->control, &byte, 1, 0) != 1)
			device_die("side %u: the supervisor has gone", s->number);
}

enum sides_word sides_heard(const struct side *s)
{
	char byte;

	return recv(s->control, &byte, 1, MSG_DONTWAIT) == 1 ? (enum sides_word)byte
							     : SIDES_NOTHING;
}

void sides_exchange(const struct side *s, const void *mine, void *theirs, size_t bytes)
{
	if (send(s->peer, mine, bytes, MSG_NOSIGNAL) != (ssize_t)bytes ||
	    recv(s->peer, theirs, bytes, MSG_WAITALL) != (ssize_t)bytes)
		device_die("side %u: the other has gone", s->number);
}

void sides_few_processors(int most)
{
	cpu_set_t allowed, few;

	CPU_ZERO(&few);
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		device_die("sched_getaffinity: %m");
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&few) < most; i++)
		if (CPU_ISSET(i, &allowed))
			CPU_SET(i, &few);
	if (sched_setaffinity(0, sizeof(few), &few))
		device_die("sched_setaffinity: %m");
}
