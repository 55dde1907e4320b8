// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls from the host into device code.  Threads that answer calls are made when all others are busy, and stay:
 * so calls of several threads of the host run in parallel, and none waits for another.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "dpa/process.h"

/* A call that takes longer is stopped.  SOFTHCA_DPA_CALL_SECONDS says otherwise; 0: never. */
#define CALL_SECONDS 60u
#define SECOND_NS    1000000000ull

/* On the stack of the caller, who waits for done. */
struct dpa_calling {
	const struct dpa_call *call;
	enum dpa_outcome outcome;
	uint64_t value;
	_Atomic(uint32_t) done; /* a futex */
};

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

/* ---- who answers ---- */

static void answer_call(struct dpa_thread *t, struct dpa_calling *c)
{
	struct dpa_stack_top *top = dpa_slot_top(t->process, t->slot);
	const struct dpa_call *call = c->call;
	uint64_t arg = 0;

	/* A call has nothing of the one before it. */
	dpa_windows_forget(t);
	if (call->unpack) {
		memcpy(top->args, call->args, call->bytes);
		c->outcome = dpa_thread_run(t, call->unpack, (uintptr_t)top->args, call->function,
					    false);
	} else {
		memcpy(&arg, call->args, min_u64(sizeof(arg), call->bytes));
		c->outcome = dpa_thread_run(t, call->function, arg, 0, false);
	}
	c->value = t->value;
}

static void *answerer_main(struct dpa_thread *t)
{
	for (;;) {
		uint32_t word = atomic_load(&t->word);
		struct dpa_calling *c = atomic_load(&t->calling);

		if (!c) {
			if (atomic_load(&t->end))
				return NULL;
			dpa_futex_wait(&t->word, word, UINT64_MAX);
			continue;
		}
		answer_call(t, c);
		atomic_store(&t->calling, NULL);
		dpa_process_after(t, c->outcome);
		atomic_store(&c->done, 1);
		dpa_futex_wake(&c->done);
	}
}

/* One that is idle, or a new one, gets the call.  NULL: *end says why not. */
static struct dpa_thread *call_give(struct dpa_process *p, struct dpa_calling *c,
				    enum dpa_call_end *end)
{
	struct dpa_thread *t = NULL;

	pthread_mutex_lock(&p->lock);
	*end = dpa_process_state(p) == DPA_RUNNING ? DPA_CALL_NO_ROOM : DPA_CALL_DEAD;
	if (*end == DPA_CALL_NO_ROOM) {
		t = p->idle;
		if (t)
			p->idle = t->idle;
		else if (dpa_process_thread(p, answerer_main, NULL, &t))
			t = NULL;
	}
	if (t) {
		atomic_store(&t->calling, c);
		atomic_fetch_add(&t->word, 1);
	}
	pthread_mutex_unlock(&p->lock);
	return t;
}

/* Once the process has ended the thread may be gone. */
static void answerer_give_back(struct dpa_process *p, struct dpa_thread *t)
{
	pthread_mutex_lock(&p->lock);
	if (dpa_process_state(p) == DPA_RUNNING) {
		atomic_store(&t->stop, 0);
		t->idle = p->idle;
		p->idle = t;
	}
	pthread_mutex_unlock(&p->lock);
}

static void call_stop(struct dpa_process *p, struct dpa_thread *t)
{
	/* Also in a process that has failed, whose error handler does not end. */
	pthread_mutex_lock(&p->lock);
	if (dpa_process_state(p) != DPA_ENDED)
		dpa_thread_stop(t);
	pthread_mutex_unlock(&p->lock);
}

/* True: in time. */
static bool call_await(struct dpa_process *p, struct dpa_thread *t, struct dpa_calling *c)
{
	uint64_t limit = call_limit_ns();
	uint64_t deadline = limit == UINT64_MAX ? limit : clock_ns() + limit;

	while (!atomic_load(&c->done)) {
		if (deadline != UINT64_MAX && clock_ns() >= deadline)
			break;
		dpa_futex_wait(&c->done, 0, deadline);
	}
	if (atomic_load(&c->done))
		return true;
	call_stop(p, t);
	while (!atomic_load(&c->done))
		dpa_futex_wait(&c->done, 0, UINT64_MAX);
	return c->outcome != DPA_OUT_STOPPED;
}

enum dpa_call_end dpa_call(struct dpa_process *p, const struct dpa_call *call, uint64_t *value)
{
	struct dpa_calling c = {.call = call};
	enum dpa_call_end end;
	struct dpa_thread *t = call_give(p, &c, &end);
	bool in_time;

	*value = 0;
	if (!t)
		return end;
	dpa_futex_wake(&t->word);
	in_time = call_await(p, t, &c);
	if (!in_time && dpa_process_state(p) == DPA_RUNNING) {
		log_warn("DPA: a call is stopped: it took longer than calls may "
			 "(SOFTHCA_DPA_CALL_SECONDS)");
		end = DPA_CALL_TIMEOUT;
	} else {
		end = c.outcome == DPA_OUT_RETURNED ? DPA_CALL_DONE : DPA_CALL_DEAD;
		*value = c.value;
	}
	answerer_give_back(p, t);
	return end;
}
