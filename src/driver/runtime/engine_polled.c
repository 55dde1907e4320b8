// SPDX-License-Identifier: BSD-2-Clause
/* Says whether threads of the program look after the device without the engine. */
#include "driver/runtime/engine_inside.h"

/* So many empty polls make a poller, if they come this close on the average.  An event-driven
 * program polls once or twice after each event. */
#define POLLS_OF_A_POLLER 3u
#define POLL_WINDOW_NS	  20000u
/* The same for a poller that has to wait for a processor: so many polls, as close by its own
 * clock. */
#define POLLS_IN_TURNS 8u

/* A poller that has had a processor for so long without a poll does something else. */
#define WITHOUT_POLL_NS 500000u
/* A poll of a thread that waits in turn with others may take so long, with what it does to let the
 * others go on. */
#define POLL_IN_TURNS_NS 50000u

/* Does the poller poll whenever it has a processor, for which it waits in turn with others? */
static bool polled_for_in_turns(struct engine *e, uint32_t polls, uint64_t now)
{
	uint32_t n = polls - e->poller.polls;
	bool goes_on;

	if (n < POLLS_IN_TURNS || !engine_trusts_pollers(e, now))
		return false;
	goes_on = poller_goes_on(&e->poller, n * (uint64_t)ENGINE_POLL_APART_NS);
	poller_mark(&e->poller, polls);
	return goes_on;
}

bool engine_is_polled_for(struct engine *e, uint64_t now)
{
	uint32_t polls = atomic_load_explicit(&e->polls, memory_order_relaxed);
	uint32_t n = polls - e->window_polls;
	uint64_t ns = now - e->window_ns;

	if (n >= POLLS_OF_A_POLLER && ns <= (uint64_t)n * ENGINE_POLL_APART_NS &&
	    engine_trusts_pollers(e, now))
		return true;
	if (ns >= POLL_WINDOW_NS) {
		e->window_polls = polls;
		e->window_ns = now;
	}
	return polled_for_in_turns(e, polls, now);
}

bool engine_poller_goes_on(struct engine *e, uint32_t polls)
{
	return poller_goes_on(&e->poller, polls * (uint64_t)POLL_IN_TURNS_NS + WITHOUT_POLL_NS);
}
