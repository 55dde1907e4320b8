// SPDX-License-Identifier: BSD-2-Clause
/* The two ends of frames that flow both ways, each a program of its own: for whoever kills one of them. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "host.h"

#define SOME 50u

static void flow_say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

/* Once, when there have been some. */
static void flow_tell(bool *said, uint64_t frames)
{
	if (!*said && frames >= SOME) {
		*said = true;
		flow_say("flows");
	}
}

/* Whoever started us has no more use for us. */
static bool flow_over(int ms)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* A handler sends back what comes. */
static void reflecting(void)
{
	bool said = false;
	struct bench b;

	flow_say("begun");
	bench_up(&b);
	reflector_up(&b);
	flow_say("up");
	while (!flow_over(1))
		flow_tell(&said, network_get(&b, frames));
	CHECK(!network_get(&b, errors));
	bench_down(&b);
}

/* Keeps some frames under way, as long as they come back; each is looked at.  What was lost with the other end
 * is made up for when there is one again. */
static void generating(void)
{
	struct raw_flow f = {.window = 4, .bytes = {64, 64, 64, 64}};
	struct raw_peer *peer;
	bool said = false;

	flow_say("begun");
	peer = raw_peer_make();
	flow_say("up");
	while (!flow_over(0)) {
		raw_peer_flow(peer, &f);
		flow_tell(&said, f.back);
	}
	raw_peer_free(peer);
}

const struct host_case flow_cases[] = {
	{"reflecting", reflecting},
	{"generating", generating},
	{NULL, NULL},
};
