// SPDX-License-Identifier: BSD-2-Clause
/* See crew.h. */
#include "crew.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "walk.h"

#define TRY_MS 3000

static const char *const order_names[] = {
	[MAKE] = "make",     [CONNECT] = "connect", [WARM_UP] = "warm-up",   [QUIT] = "quit",
	[STEP] = "step",     [FINISH] = "finish",   [EPILOGUE] = "epilogue", [CHECK] = "check",
	[FILL] = "fill",     [LOOK] = "look",	    [REAP] = "reap",	     [REVOKE] = "revoke",
	[VERIFY] = "verify", [PROBE] = "probe",	    [TRAFFIC] = "traffic",   [SETTLE] = "settle",
	[DROP] = "drop",     [RECEIVE] = "receive", [TALK] = "talk",
};

char story[512];

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n  %s\n", story);
	exit(1);
}

void process_spawn(struct process *p, const char *name, void (*body)(int sock))
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		device_die("socketpair: %m");
	fflush(stdout);
	*p = (struct process){.name = name, .sock = pair[0], .pid = fork()};
	if (p->pid < 0)
		device_die("fork: %m");
	if (!p->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(pair[1]);
		_exit(0);
	}
	close(pair[1]);
}

void process_order(struct process *p, const struct order *o)
{
	if (send(p->sock, o, sizeof(*o), MSG_NOSIGNAL) != sizeof(*o))
		fail("the %s has gone before it is told to %s", p->name, order_names[o->code]);
}

/* Rounds are counted, each of a second at most: a tick (walk_ticks) ends one, too. */
static bool answer_comes(const struct process *p)
{
	struct pollfd fd = {.fd = p->sock, .events = POLLIN};

	for (int i = 0; i < 2 * STEPS_LIMIT_MS / 1000; i++)
		if (poll(&fd, 1, 1000) == 1)
			return true;
	return false;
}

struct answer process_answer(struct process *p, uint32_t code)
{
	struct answer a = {0};

	if (!answer_comes(p)) {
		char place[512];

		walk_place_of(p->pid, place, sizeof(place));
		fail("the %s does not %s within %d s; it is at %s", p->name, order_names[code],
		     STEPS_LIMIT_MS / 1000, place);
	}
	if (recv(p->sock, &a, sizeof(a), 0) != sizeof(a))
		fail("the %s ends when it is told to %s", p->name, order_names[code]);
	if (a.complaint[0])
		fail("the %s, told to %s: %s", p->name, order_names[code], a.complaint);
	return a;
}

struct answer process_ask(struct process *p, uint32_t code, uint32_t link, uint32_t arg)
{
	struct order o = {.code = code, .link = link, .arg = arg};

	process_order(p, &o);
	return process_answer(p, code);
}

void process_connect(struct process *p, uint32_t link, const struct place *place)
{
	struct order o = {.code = CONNECT, .link = link, .place = *place};

	process_order(p, &o);
	process_answer(p, CONNECT);
}

bool process_try(struct process *p, const struct order *o, struct answer *a)
{
	struct pollfd fd = {.fd = p->sock, .events = POLLIN};

	return send(p->sock, o, sizeof(*o), MSG_NOSIGNAL) == sizeof(*o) &&
	       poll(&fd, 1, TRY_MS) == 1 && recv(p->sock, a, sizeof(*a), 0) == sizeof(*a);
}

void process_end(struct process *p, bool by_force)
{
	struct order quit = {.code = QUIT};
	int status;

	if (by_force)
		kill(p->pid, SIGKILL);
	else
		process_order(p, &quit);
	if (!walk_wait(p->pid, &status))
		fail("the %s does not end", p->name);
	if (!by_force && status)
		fail("the %s ends with %#x", p->name, (unsigned)status);
	close(p->sock);
}
