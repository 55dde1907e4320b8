// SPDX-License-Identifier: BSD-2-Clause
/* How long the engine stays awake for the next piece of work. */
#include <sched.h>

#include "base/clock.h"
#include "base/starved.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/engine_inside.h"

#define USEC 1000u

#define SPIN_MIN_NS (4 * USEC)
#define SPIN_MAX_NS (20 * USEC)
/* On a machine with few CPUs a spinning engine keeps a worker from running, maybe the very one that
 * waits for what the engine has just delivered. */
#define FEW_CPUS	4
#define FEW_SPIN_MIN_NS 0u
#define FEW_SPIN_MAX_NS (8 * USEC)
#define SPIN_STEP_NS	(2 * USEC)
/* An engine that has no spin window leaves at once, and never sees that the next packet comes a
 * moment later.  So after so many such looks it stays once. */
#define LEAVES_AT_ONCE 16u
/* It also stays, for so long, before it moves beside the one who wakes it: if that one waits for
 * each piece before it sends the next, both are faster apart. */
#define BEFORE_MOVE_NS (4 * USEC)
/* A program that rings by bare stores pays a fault for each sleep of the engine, so the engine
 * spins longer. */
#define DIRECT_SPIN_NS (20 * USEC)

/* An engine that was away for so long while it was awake is starved (base/starved.h). */
#define AWAY_NS (1000 * USEC)
/* But if work came as often as this while it ran, it stays: it has a share of the processor, and to
 * be woken for each piece would take more than twice as long. */
#define DENSE_NS     (2 * USEC)
#define DENSE_PIECES 8u

void engine_window_init(struct engine *e)
{
	cpu_set_t cpus;

	e->spin_min_ns = SPIN_MIN_NS;
	e->spin_max_ns = SPIN_MAX_NS;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) < FEW_CPUS) {
		e->spin_min_ns = FEW_SPIN_MIN_NS;
		e->spin_max_ns = FEW_SPIN_MAX_NS;
		e->few = true;
	}
}

bool engine_is_scarce(const struct engine *e, uint64_t now)
{
	return now < e->starved_until_ns ||
	       now < atomic_load_explicit(&e->answered_until_ns, memory_order_relaxed);
}

/*
 * Processors are scarce until then.  Where threads that do not sleep want every processor, the
 * engine gets to run for a moment only, if it asks for no more: staying awake for the next message
 * or doorbell would cost it milliseconds.
 */
static void engine_reckon(struct engine *e, uint64_t until_ns)
{
	if (until_ns <= e->starved_until_ns)
		return;
	e->starved_until_ns = until_ns;
	doorbell_keep_armed(max_u64(until_ns, atomic_load_explicit(&e->answered_until_ns,
								   memory_order_relaxed)));
}

void engine_woken(struct engine *e)
{
	if (beside_woken(&e->place, atomic_exchange(e->waker_plus_1, 0)))
		engine_reckon(e, clock_ns() + STARVED_MIN_NS);
}

static void turn_begin(struct engine *e, uint64_t now)
{
	e->turn_began_ns = now;
	e->turn_pieces = 0;
}

static bool turn_was_dense(const struct engine *e)
{
	return e->turn_pieces >= DENSE_PIECES &&
	       e->seen_ns - e->turn_began_ns <= e->turn_pieces * DENSE_NS;
}

uint64_t engine_window_open(struct engine *e, uint64_t now)
{
	e->seen_ns = now;
	turn_begin(e, now);
	if (engine_is_scarce(e, now))
		return 0;
	if (doorbell_any_direct())
		return max_u64(e->spin_ns, DIRECT_SPIN_NS);
	if (!e->spin_ns && beside_moves_soon(&e->place))
		return BEFORE_MOVE_NS;
	if (!e->spin_ns && ++e->left_at_once % LEAVES_AT_ONCE == 0)
		return SPIN_STEP_NS;
	return e->spin_ns;
}

void engine_looked(struct engine *e, uint64_t now, bool done)
{
	if (unlikely(now - e->seen_ns > AWAY_NS)) {
		if (!turn_was_dense(e)) {
			e->starved_for_ns = starved_ns(now, e->starved_until_ns, e->starved_for_ns);
			engine_reckon(e, now + e->starved_for_ns);
		}
		turn_begin(e, now);
	}
	e->turn_pieces += done;
	e->seen_ns = now;
}

void engine_window_close(struct engine *e, unsigned batches)
{
	if (batches > 1)
		e->spin_ns = min_u64(2 * e->spin_ns + SPIN_STEP_NS, e->spin_max_ns);
	else if (e->spin_ns / 2 > e->spin_min_ns)
		e->spin_ns /= 2;
	else
		e->spin_ns = e->spin_min_ns;
}
