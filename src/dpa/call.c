// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls from the host into device code.  When all threads that answer calls are busy, a new one is
 * made, and it stays: so calls of several threads of the host run in parallel, and none waits for
 * another.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "dpa/place.h"
#include "dpa/process.h"

/* A call that takes longer is stopped.  SOFTHCA_DPA_CALL_SECONDS sets another limit; 0: none. */
#define CALL_SECONDS 60u
#define SECOND_NS    1000000000ull

/* Values of dpa_calling.done, which is a futex. */
enum call_done { CALL_RUNS, CALL_AWAITED /* the caller sleeps */, CALL_DONE };

/* Lies on the stack of the caller, who waits for done. */
struct dpa_calling {
	const struct dpa_call *call; /* for long arguments */
	enum dpa_outcome outcome;
	uint64_t value;
	uint64_t done_ns;	/* when the call was done, if the caller sleeps */
	_Atomic(uint32_t) done; /* enum call_done */
} cacheline_aligned;

static uint64_t call_limit_ns(void)
{
	static _Atomic(uint64_t) limit;
	uint64_t ns = atomic_load_explicit(&limit, memory_order_relaxed);
	const char *text;
	char *end;

	if (ns)
		return ns;
	text = getenv("SOFTHCA_DPA_CALL_SECONDS");
	ns = text ? strtoul(text, &end, 10) * SECOND_NS : CALL_SECONDS * SECOND_NS;
	if (text && (*end || end == text)) {
		log_warn("SOFTHCA_DPA_CALL_SECONDS is a number of seconds, not: %s", text);
		ns = CALL_SECONDS * SECOND_NS;
	}
	ns = ns ? ns : UINT64_MAX;
	atomic_store_explicit(&limit, ns, memory_order_relaxed);
	return ns;
}

/* ---- the threads that answer ---- */

static enum dpa_outcome answer_call(struct dpa_thread *t, const struct dpa_calling *c)
{
	struct dpa_stack_top *top = dpa_slot_top(t->process, t->slot);
	const struct dpa_ask *ask = &t->ask;
	const void *args = ask->bytes <= sizeof(ask->args) ? ask->args : c->call->args;
	enum dpa_outcome outcome;
	uint64_t arg = 0;

	/* No window of the call before it is set. */
	dpa_windows_forget(t);
	t->entry = ask->function;
	if (ask->unpack) {
		memcpy(top->args, args, ask->bytes);
		outcome =
			dpa_thread_run(t, ask->unpack, (uintptr_t)top->args, ask->function, false);
	} else {
		memcpy(&arg, args, min_u64(sizeof(arg), ask->bytes));
		outcome = dpa_thread_run(t, ask->function, arg, 0, false);
	}
	return outcome;
}

static void call_tell(struct dpa_calling *c, enum dpa_outcome outcome, uint64_t value)
{
	c->outcome = outcome;
	c->value = value;
	if (atomic_load(&c->done) == CALL_AWAITED)
		c->done_ns = clock_ns();
	/* After this the caller may be gone.  If another thread's memory lies there by then, it
	 * only gets a wake-up that is not for it. */
	if (atomic_exchange(&c->done, CALL_DONE) == CALL_AWAITED)
		futex_wake_all(&c->done, FUTEX_OF_PROCESS);
}

/* The answerer only reads what the next call writes, and writes this record instead. */
struct answering {
	struct dpa_thread *thread;
	uint32_t count; /* how many calls are answered */
};

static bool answerer_wait_is_over(const void *arg)
{
	const struct answering *a = arg;

	return atomic_load(&a->thread->ask.count) != a->count || atomic_load(&a->thread->end);
}

static void *answerer_main(struct dpa_thread *t)
{
	struct answering a = {.thread = t};

	for (;;) {
		struct dpa_calling *c;
		enum dpa_outcome outcome;
		uint64_t value;

		if (atomic_load(&t->ask.count) == a.count) {
			if (atomic_load(&t->end))
				return NULL;
			dpa_thread_await(t, answerer_wait_is_over, &a);
			continue;
		}
		a.count++;
		c = t->ask.calling;
		outcome = answer_call(t, c);
		value = t->value; /* an error handler leaves its own value */
		dpa_process_after(t, outcome);
		call_tell(c, outcome, value);
	}
}

/* The thread that answers a call, as the caller knows it. */
struct answerer {
	struct dpa_thread *thread; /* NULL: none */
	struct adaptive_spin spin;
	bool sleeps;
	uint32_t place; /* the thread's processor */
};

static bool call_ask(struct dpa_thread *t, struct dpa_calling *c)
{
	const struct dpa_call *call = c->call;
	struct dpa_ask *ask = &t->ask;

	ask->calling = c;
	ask->function = call->function;
	ask->unpack = call->unpack;
	ask->bytes = call->bytes;
	if (call->bytes <= sizeof(ask->args))
		memcpy(ask->args, call->args, call->bytes);
	atomic_fetch_add(&ask->count, 1);
	return dpa_thread_rouse(t);
}

/* Gives the call to an idle thread, or to a new one.  NULL: *end says why there is none. */
static struct answerer call_give(struct dpa_process *p, struct dpa_calling *c,
				 enum dpa_call_end *end)
{
	struct answerer a = {0};

	pthread_mutex_lock(&p->lock);
	*end = dpa_process_state(p) == DPA_RUNNING ? DPA_CALL_NO_ROOM : DPA_CALL_DEAD;
	if (*end == DPA_CALL_NO_ROOM) {
		a.thread = p->idle;
		if (a.thread)
			p->idle = a.thread->idle;
		else if (dpa_process_thread(p, dpa_thread_number(), answerer_main, NULL, &a.thread))
			a.thread = NULL;
	}
	if (a.thread) {
		a.spin = a.thread->callers;
		a.sleeps = call_ask(a.thread, c);
		a.place = atomic_load(&a.thread->place);
	}
	pthread_mutex_unlock(&p->lock);
	return a;
}

/* Gives the thread back, unless the process has ended: then the thread may be gone. */
static void answerer_give_back(struct dpa_process *p, const struct answerer *a)
{
	struct dpa_thread *t = a->thread;

	pthread_mutex_lock(&p->lock);
	if (dpa_process_state(p) == DPA_RUNNING) {
		if (atomic_load(&t->stop))
			atomic_store(&t->stop, 0);
		t->callers = a->spin;
		t->idle = p->idle;
		p->idle = t;
	}
	pthread_mutex_unlock(&p->lock);
}

static void call_stop(struct dpa_process *p, struct dpa_thread *t)
{
	/* This also stops it in a process that has failed, whose error handler does not end. */
	pthread_mutex_lock(&p->lock);
	if (dpa_process_state(p) != DPA_ENDED)
		dpa_thread_stop(t);
	pthread_mutex_unlock(&p->lock);
}

static bool call_is_done(const void *arg)
{
	const struct dpa_calling *c = arg;

	return atomic_load(&c->done) == CALL_DONE;
}

/* Sleeps until the call is done.  False: it is not done, and the time is over. */
static bool call_sleep(struct dpa_calling *c, uint64_t deadline)
{
	uint32_t runs = CALL_RUNS;

	atomic_compare_exchange_strong(&c->done, &runs, CALL_AWAITED);
	while (!call_is_done(c)) {
		if (deadline != UINT64_MAX && clock_ns() >= deadline)
			return false;
		futex_wait_until(&c->done, CALL_AWAITED, deadline, FUTEX_OF_PROCESS);
	}
	return true;
}

static bool call_look(struct answerer *a, struct dpa_calling *c)
{
	/* The answerer may have to wake a processor first, because it has moved to another. */
	if (a->place == DPA_BETWEEN)
		return spin_on_until(call_is_done, c);
	/* The two share a processor, so the caller sleeps at once. */
	if (a->place == dpa_place_here())
		return call_is_done(c);
	return adaptive_spin_until(&a->spin, call_is_done, c, NULL);
}

/* Was the call stopped, perhaps before its thread had begun with it? */
static bool call_was_stopped(const struct dpa_calling *c)
{
	return c->outcome == DPA_OUT_STOPPED || c->outcome == DPA_OUT_DEAD;
}

/* Waits for the call.  True: it was done in time. */
static bool call_await(struct dpa_process *p, struct answerer *a, struct dpa_calling *c)
{
	uint64_t begin, limit = call_limit_ns();

	if (call_look(a, c))
		return true;
	begin = clock_ns();
	if (!call_sleep(c, limit == UINT64_MAX ? limit : begin + limit)) {
		call_stop(p, a->thread);
		(void)call_sleep(c, UINT64_MAX);
		return !call_was_stopped(c);
	}
	adaptive_spin_learn(&a->spin, c->done_ns > begin ? c->done_ns - begin : 0);
	return true;
}

static enum dpa_call_end call_end(enum dpa_outcome outcome)
{
	switch (outcome) {
	case DPA_OUT_RETURNED:
		return DPA_CALL_DONE;
	case DPA_OUT_RESCHEDULED:
	case DPA_OUT_RETRIGGERED:
	case DPA_OUT_FINISHED:
		return DPA_CALL_LEFT;
	default:
		return DPA_CALL_DEAD;
	}
}

enum dpa_call_end dpa_call(struct dpa_process *p, const struct dpa_call *call, uint64_t *value)
{
	struct dpa_calling c = {.call = call};
	enum dpa_call_end end;
	struct answerer a = call_give(p, &c, &end);
	bool in_time;

	*value = 0;
	if (!a.thread)
		return end;
	if (a.sleeps)
		futex_wake_all(&a.thread->word, FUTEX_OF_PROCESS);
	in_time = call_await(p, &a, &c);
	if (!in_time && dpa_process_state(p) == DPA_RUNNING) {
		log_warn("DPA: a call is stopped: it took longer than calls may "
			 "(SOFTHCA_DPA_CALL_SECONDS)");
		*value = dpa_crash_late(p, a.thread);
		end = DPA_CALL_TIMEOUT;
	} else {
		end = call_end(c.outcome);
		*value = c.value;
	}
	answerer_give_back(p, &a);
	return end;
}
