// SPDX-License-Identifier: BSD-2-Clause
/*
 * The protocol by which threads drive the device (docs/design/progress.md), as a model of which all
 * interleavings are tried: two peers that send a message each, the engine, and two threads of the
 * program that wait for one message each, the first at the FIFO (poll), the second at the word (read).
 * Each step of the model is one access to shared memory or one call of the kernel.
 *
 * In some runs one peer or one thread stops for ever, at any step.  What must hold:
 *
 *   nobody stops    each message reaches its thread, although the guard never looks by itself while a
 *                   thread is registered: no wake-up of such a thread hangs on the guard's naps
 *   somebody stops  the same for the others; now the guard looks now and then
 *   always          one thread drives at a time, of those that take the lock
 *
 * Shown is that from every state that can be reached a way leads to one where the messages of all who
 * go on have reached their threads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "registry/registry.h"

#define STATES (1u << 23)

enum { PEERS = 2, THREADS = 2 };
enum { POLLER, READER }; /* how the thread of that number sleeps */

/* Where a message is. */
enum { UNSENT, IN_INBOX, AN_EVENT, TAKEN };

enum peer_at {
	PEER_STORES,
	PEER_LOOKS_AT_WORD,
	PEER_WAKES_ENGINE,
	PEER_LOOKS_AT_WAITER,
	PEER_WAKES_BOTH,
	PEER_KNOCKS,
	PEER_WRITES,
	PEER_DONE
};

enum engine_at {
	ENGINE_LOOKS,
	GUARD_STORES,
	GUARD_LOOKS_ONCE,
	GUARD_NAPS,
	GUARD_LOOKS,
	SLEEP_LOCKS,
	SLEEP_STORES,
	SLEEP_LOOKS,
	SLEEP_UNLOCKS,
	SLEEPS
};

enum thread_at {
	THREAD_REGISTERS,
	THREAD_LOCKS,
	THREAD_DRIVES,
	THREAD_UNLOCKS,
	THREAD_DECIDES,
	THREAD_SLEEPS,
	THREAD_UNREGISTERS,
	THREAD_LOCKS_AWAKE,
	THREAD_DRIVES_AWAKE,
	THREAD_UNLOCKS_AWAKE,
	THREAD_TAKES_OVER,
	THREAD_LEAVES,
	THREAD_SLEEPS_AS_USUAL,
	THREAD_DONE
};

struct state {
	uint8_t driver;	 /* enum slot_driver */
	uint8_t waiter;	 /* the thread's number plus 1 */
	uint8_t lock;	 /* likewise, or ENGINE_HOLDS */
	uint8_t in_fifo; /* a byte is in the FIFO */
	uint8_t message[PEERS];
	uint8_t peer[PEERS], engine, thread[THREADS];
	uint8_t found[THREADS]; /* the thread has driven, and found something */
	uint8_t stopped;	/* 0: nobody; otherwise enum stopped plus 1 */
};

enum stopped { STOPPED_PEER, STOPPED_THREAD_0, STOPPED_THREAD_1 };
#define ENGINE_HOLDS (THREADS + 1)

static struct {
	struct state *all;
	bool *ends_well;
	uint32_t *index; /* by hash: number in 'all' plus 1 */
	uint32_t count;
	bool stops;    /* somebody may stop, and the guard naps */
	bool explored; /* no state is new any more */
	bool found;    /* a step led to a state that ends well */
} run;

static uint64_t hash_of(const struct state *s)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < sizeof(*s); i++)
		hash = (hash ^ ((const uint8_t *)s)[i]) * 0x100000001b3u;
	return hash;
}

/* A step leads to that state. */
static void reach(const struct state *s)
{
	for (uint64_t at = hash_of(s);; at++) {
		uint32_t *entry = &run.index[at % STATES];

		if (*entry && memcmp(&run.all[*entry - 1], s, sizeof(*s)) == 0) {
			run.found |= run.ends_well[*entry - 1];
			return;
		}
		if (*entry)
			continue;
		CHECK(!run.explored && run.count < STATES / 2);
		run.ends_well[run.count] = false;
		run.all[run.count++] = *s;
		*entry = run.count;
		return;
	}
}

/* ---- what all of them do ---- */

/* An event for the reader wakes it if it sleeps (drive_note_event). */
static bool drive(struct state *s)
{
	bool any = false;

	for (unsigned i = 0; i < PEERS; i++) {
		if (s->message[i] != IN_INBOX)
			continue;
		s->message[i] = AN_EVENT;
		any = true;
		if (i == READER && s->waiter == READER + 1)
			s->waiter = 0;
	}
	return any;
}

static void wake_engine(struct state *s, enum slot_driver driver)
{
	s->driver = driver;
}

/* ---- the steps of each ---- */

static bool peer_step(struct state *s, unsigned i)
{
	switch (s->peer[i]) {
	case PEER_STORES:
		s->message[i] = IN_INBOX;
		s->peer[i] = PEER_LOOKS_AT_WORD;
		return true;
	case PEER_LOOKS_AT_WORD:
		s->peer[i] = s->driver == SLOT_ENGINE ? PEER_DONE : PEER_LOOKS_AT_WAITER;
		if (s->driver == SLOT_NOBODY)
			s->peer[i] = s->waiter ? PEER_WAKES_BOTH : PEER_WAKES_ENGINE;
		return true;
	case PEER_WAKES_ENGINE:
		wake_engine(s, SLOT_ENGINE);
		s->peer[i] = PEER_DONE;
		return true;
	case PEER_WAKES_BOTH:
		wake_engine(s, SLOT_PROGRAM);
		s->peer[i] = PEER_KNOCKS;
		return true;
	case PEER_LOOKS_AT_WAITER:
		s->peer[i] = s->waiter ? PEER_KNOCKS : PEER_DONE;
		return true;
	case PEER_KNOCKS: /* a reader sees that the word has changed, in the same call of the kernel */
		s->peer[i] = s->waiter == POLLER + 1 ? PEER_WRITES : PEER_DONE;
		s->waiter = 0;
		return true;
	case PEER_WRITES:
		s->in_fifo = 1;
		s->peer[i] = PEER_DONE;
		return true;
	default:
		return false;
	}
}

/* Both ways on where the code decides by what it has measured. */
static void engine_branch(const struct state *s, enum engine_at other)
{
	struct state next = *s;

	next.engine = (uint8_t)other;
	reach(&next);
}

static bool engine_step(struct state *s)
{
	switch (s->engine) {
	case ENGINE_LOOKS:
		(void)drive(s);
		s->engine = s->waiter || s->driver == SLOT_PROGRAM ? GUARD_STORES : SLEEP_LOCKS;
		return true;
	case GUARD_STORES:
		s->driver = SLOT_PROGRAM;
		s->engine = GUARD_LOOKS_ONCE;
		return true;
	case GUARD_LOOKS_ONCE:
		s->engine = GUARD_NAPS;
		if (s->waiter && drive(s)) {
			s->driver = SLOT_ENGINE;
			s->engine = ENGINE_LOOKS;
		}
		return true;
	case GUARD_NAPS:
		if (s->driver == SLOT_PROGRAM && s->waiter && !run.stops)
			return false;
		s->engine = s->driver == SLOT_PROGRAM ? GUARD_LOOKS : ENGINE_LOOKS;
		return true;
	case GUARD_LOOKS:
		/* A thread may have polled meanwhile, or nothing has come for long. */
		engine_branch(s, GUARD_NAPS);
		s->driver = SLOT_ENGINE;
		if (!drive(s) && s->waiter)
			engine_branch(s, SLEEP_LOCKS);
		s->engine = ENGINE_LOOKS;
		return true;
	case SLEEP_LOCKS:
		s->engine = s->lock ? GUARD_STORES : SLEEP_STORES;
		if (!s->lock)
			s->lock = ENGINE_HOLDS;
		return true;
	case SLEEP_STORES:
		s->driver = SLOT_NOBODY;
		s->engine = SLEEP_LOOKS;
		return true;
	case SLEEP_LOOKS:
		s->engine = SLEEP_UNLOCKS;
		(void)drive(s); /* the code looks again then; to sleep is the harder case */
		return true;
	case SLEEP_UNLOCKS:
		CHECK(s->lock == ENGINE_HOLDS);
		s->lock = 0;
		s->engine = SLEEPS;
		return true;
	case SLEEPS:
		if (s->driver == SLOT_NOBODY)
			return false;
		s->engine = s->driver == SLOT_PROGRAM ? GUARD_STORES : ENGINE_LOOKS;
		return true;
	default:
		return false;
	}
}

static void thread_lock(struct state *s, unsigned i, enum thread_at drives,
			enum thread_at otherwise)
{
	s->found[i] = false;
	s->thread[i] = (uint8_t)(s->lock ? otherwise : drives);
	if (!s->lock)
		s->lock = (uint8_t)(i + 1);
}

static void thread_unlock(struct state *s, unsigned i, enum thread_at next)
{
	CHECK(s->lock == i + 1);
	s->lock = 0;
	s->thread[i] = (uint8_t)next;
}

/* The thread has its event, or goes on waiting. */
static void thread_looks_for_event(struct state *s, unsigned i)
{
	if (s->message[i] == AN_EVENT)
		s->message[i] = TAKEN;
	s->thread[i] = s->message[i] == TAKEN ? THREAD_LEAVES : THREAD_REGISTERS;
}

/* The thread may poll for a while before it waits, and say so (notice_poller).  One of the two does: that
 * both do shows nothing more and takes three times as many states. */
static void thread_polls(const struct state *s, unsigned i)
{
	struct state next = *s;

	next.driver = SLOT_PROGRAM;
	next.thread[i] = THREAD_LOCKS_AWAKE;
	reach(&next);
}

static bool thread_step(struct state *s, unsigned i)
{
	bool own;

	switch (s->thread[i]) {
	case THREAD_REGISTERS:
		if (i == READER)
			thread_polls(s, i);
		s->thread[i] = s->waiter ? THREAD_TAKES_OVER : THREAD_LOCKS;
		if (!s->waiter)
			s->waiter = (uint8_t)(i + 1);
		return true;
	case THREAD_LOCKS:
		thread_lock(s, i, THREAD_DRIVES, THREAD_DECIDES);
		return true;
	case THREAD_DRIVES:
		/* It looks itself, so its own event does not wake it (looking). */
		own = s->waiter == i + 1;
		s->found[i] = drive(s);
		if (own)
			s->waiter = (uint8_t)(i + 1);
		s->thread[i] = THREAD_UNLOCKS;
		return true;
	case THREAD_UNLOCKS:
		thread_unlock(s, i, THREAD_DECIDES);
		return true;
	case THREAD_DECIDES:
		if (!s->found[i] && s->message[i] != AN_EVENT) {
			s->thread[i] = THREAD_SLEEPS;
			return true;
		}
		if (s->waiter == i + 1)
			s->waiter = 0;
		thread_looks_for_event(s, i);
		return true;
	case THREAD_SLEEPS:
		if (i == READER ? s->waiter == READER + 1
				: !s->in_fifo && s->message[i] != AN_EVENT)
			return false;
		if (i == POLLER)
			s->in_fifo = 0;
		s->thread[i] = THREAD_UNREGISTERS;
		return true;
	case THREAD_UNREGISTERS:
		/* Woken by a peer or by its own event. */
		if (s->waiter == i + 1)
			s->waiter = 0;
		s->thread[i] = THREAD_LOCKS_AWAKE;
		return true;
	case THREAD_LOCKS_AWAKE:
		thread_lock(s, i, THREAD_DRIVES_AWAKE, THREAD_TAKES_OVER);
		return true;
	case THREAD_DRIVES_AWAKE:
		(void)drive(s);
		s->thread[i] = THREAD_UNLOCKS_AWAKE;
		return true;
	case THREAD_UNLOCKS_AWAKE:
		thread_unlock(s, i, THREAD_DONE);
		thread_looks_for_event(s, i);
		return true;
	case THREAD_TAKES_OVER:
		if (s->driver == SLOT_PROGRAM)
			wake_engine(s, SLOT_ENGINE);
		s->thread[i] = THREAD_SLEEPS_AS_USUAL;
		return true;
	case THREAD_LEAVES:
		/* Others wait (crowd_until_ns). */
		if (s->driver == SLOT_PROGRAM)
			wake_engine(s, SLOT_ENGINE);
		s->thread[i] = THREAD_DONE;
		return true;
	case THREAD_SLEEPS_AS_USUAL:
		if (s->message[i] != AN_EVENT)
			return false;
		s->message[i] = TAKEN;
		s->thread[i] = THREAD_LEAVES;
		return true;
	default:
		return false;
	}
}

/* ---- all interleavings ---- */

static bool has_stopped(const struct state *s, enum stopped who)
{
	return s->stopped == who + 1;
}

static void try_steps(const struct state *from)
{
	struct state s = *from;

	if (engine_step(&s))
		reach(&s);
	for (unsigned i = 0; i < PEERS; i++) {
		s = *from;
		if (!(i == 0 && has_stopped(from, STOPPED_PEER)) && peer_step(&s, i))
			reach(&s);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		s = *from;
		if (!has_stopped(from, STOPPED_THREAD_0 + i) && thread_step(&s, i))
			reach(&s);
	}
}

static void stop_somebody(const struct state *from)
{
	if (from->stopped)
		return;
	for (unsigned who = STOPPED_PEER; who <= STOPPED_THREAD_1; who++) {
		struct state s = *from;

		s.stopped = (uint8_t)(who + 1);
		reach(&s);
	}
}

/* Has each message reached its thread, unless its peer or the thread has stopped? */
static bool is_good(const struct state *s)
{
	for (unsigned i = 0; i < PEERS; i++)
		if (s->message[i] != TAKEN && !(i == 0 && has_stopped(s, STOPPED_PEER)) &&
		    !has_stopped(s, STOPPED_THREAD_0 + i))
			return false;
	return true;
}

static void find_states(void)
{
	const struct state first = {.driver = SLOT_NOBODY, .engine = SLEEPS};

	run.count = 0;
	run.explored = false;
	memset(run.index, 0, STATES * sizeof(*run.index));
	reach(&first);
	for (uint32_t i = 0; i < run.count; i++) {
		const struct state s = run.all[i];

		run.ends_well[i] = is_good(&s);
		if (run.stops)
			stop_somebody(&s);
		try_steps(&s);
	}
	run.explored = true;
}

/* Goes back from the good states, as long as that finds more that lead there. */
static uint32_t find_ends(void)
{
	uint32_t left, before;

	left = run.count;
	do {
		before = left;
		left = 0;
		for (uint32_t i = run.count; i--;) {
			const struct state s = run.all[i];

			if (run.ends_well[i])
				continue;
			run.found = false;
			try_steps(&s);
			run.ends_well[i] = run.found;
			left += !run.found;
		}
	} while (left != before);
	return left;
}

static void show_one_that_does_not_end(void)
{
	for (uint32_t i = 0; i < run.count; i++) {
		const struct state *s = &run.all[i];

		if (run.ends_well[i])
			continue;
		fprintf(stderr,
			"driver %u, waiter %u, lock %u, in_fifo %u, messages %u %u, peers %u %u, "
			"engine %u, "
			"threads %u %u, stopped %u\n",
			s->driver, s->waiter, s->lock, s->in_fifo, s->message[0], s->message[1],
			s->peer[0], s->peer[1], s->engine, s->thread[0], s->thread[1], s->stopped);
		return;
	}
}

static void explore(bool stops)
{
	uint32_t left;

	run.stops = stops;
	find_states();
	left = find_ends();
	printf("%u states, %u of them do not end well\n", run.count, left);
	if (left)
		show_one_that_does_not_end();
	CHECK(!left);
}

int main(void)
{
	run.all = malloc(STATES / 2 * sizeof(*run.all));
	run.ends_well = malloc(STATES / 2 * sizeof(*run.ends_well));
	run.index = malloc(STATES * sizeof(*run.index));
	CHECK(run.all && run.ends_well && run.index);
	explore(false);
	explore(true);
	free(run.index);
	free(run.ends_well);
	free(run.all);
	return 0;
}
