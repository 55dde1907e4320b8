// SPDX-License-Identifier: BSD-2-Clause
/* See handler.h. */
#include "dpa/handler.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/log.h"
#include "dpa/eu.h"
#include "dpa/process.h"

enum handler_state { HANDLER_CREATED, HANDLER_READY, HANDLER_FINISHED };

struct dpa_handler {
	struct dpa_handler_attr attr;
	struct dpa_thread *thread;
	struct dpa_eu_wait eu;
	uint64_t arg;
	_Atomic(uint32_t) state; /* enum handler_state */
	_Atomic(uint32_t) pending;
	bool has_eu;
	bool returned; /* its function returned, and the log has said that it must not */
};

/* ---- events ---- */

void dpa_handler_activate(struct dpa_handler *h)
{
	/* The thread first says that it sleeps, and then looks for an event once more. */
	if (!atomic_exchange(&h->pending, 1) && atomic_load(&h->thread->asleep))
		dpa_thread_wake(h->thread);
}

int dpa_handler_run(struct dpa_handler *h, uint64_t arg)
{
	if (dpa_process_state(h->thread->process) != DPA_RUNNING)
		return -ESHUTDOWN;
	if (atomic_load(&h->state) != HANDLER_CREATED)
		return -EALREADY;
	/* The argument is written before the thread can look at it. */
	h->arg = arg;
	atomic_store(&h->state, HANDLER_READY);
	dpa_thread_wake(h->thread);
	return 0;
}

static bool handler_has_event(const struct dpa_handler *h)
{
	return atomic_load(&h->pending) && atomic_load(&h->state) == HANDLER_READY;
}

static bool handler_must_leave(const struct dpa_thread *t)
{
	return atomic_load(&t->end) || atomic_load(&t->stop);
}

static bool handler_wait_is_over(const void *arg)
{
	const struct dpa_handler *h = arg;

	return handler_has_event(h) || handler_must_leave(h->thread);
}

/* Waits for an event; false: the thread is to end, or was stopped in the middle of a run. */
static bool handler_await(struct dpa_handler *h)
{
	while (!handler_must_leave(h->thread)) {
		if (handler_has_event(h)) {
			atomic_store(&h->pending, 0);
			return true;
		}
		dpa_thread_await(h->thread, handler_wait_is_over, h);
	}
	return false;
}

/* ---- runs ---- */

/* Decides what the end of a run means for the next run. */
static void handler_after(struct dpa_handler *h, enum dpa_outcome outcome)
{
	if (outcome == DPA_OUT_RETRIGGERED) {
		atomic_store(&h->pending, 1);
	} else if (outcome == DPA_OUT_FINISHED) {
		atomic_store(&h->state, HANDLER_FINISHED);
	} else if (outcome == DPA_OUT_RETURNED && !h->returned) {
		h->returned = true;
		log_warn("DPA: handler 0x%x returned: it has to end with "
			 "flexio_dev_thread_reschedule, which is what happens now",
			 h->attr.id);
	}
	dpa_process_after(h->thread, outcome);
}

/* Writes again what device code has been told, because it may have spoiled that. */
static void handler_tell(const struct dpa_handler *h)
{
	struct flexio_dev_thread_ctx *ctx = &dpa_slot_top(h->thread->process, h->thread->slot)->ctx;

	ctx->version = 1;
	ctx->thread_id = h->attr.id;
	ctx->thread_local_storage = h->attr.local_storage;
}

/* Sleeps until the next event, in the middle of the handler's function; other handlers may have its
 * unit meanwhile. */
static void handler_yield(struct dpa_thread *t, bool retrigger)
{
	struct dpa_handler *h = t->user;

	if (!h->attr.continuable)
		return;
	dpa_eu_give(&h->eu);
	if (retrigger)
		atomic_store(&h->pending, 1);
	if (handler_await(h))
		h->has_eu = dpa_eu_take(&h->eu);
	else
		h->has_eu = false;
}

static bool handler_ends(const void *arg)
{
	const struct dpa_thread *t = arg;

	return atomic_load(&t->end);
}

static void *handler_main(struct dpa_thread *t)
{
	struct dpa_handler *h = t->user;
	enum dpa_outcome outcome;

	/* Waits until the thread that makes this one is done. */
	pthread_mutex_lock(&t->process->lock);
	pthread_mutex_unlock(&t->process->lock);
	while (handler_await(h)) {
		h->has_eu = dpa_eu_take(&h->eu);
		if (!h->has_eu)
			break;
		handler_tell(h);
		outcome = dpa_thread_run(t, h->attr.function, h->arg, 0, false);
		/* A thread that was stopped while it had yielded has no unit. */
		if (h->has_eu)
			dpa_eu_give(&h->eu);
		handler_after(h, outcome);
	}
	/* The thread is stopped for good, but the one that stopped it waits until this has been
	 * told to end. */
	dpa_thread_await(t, handler_ends, t);
	return NULL;
}

/* ---- handlers come and go ---- */

int dpa_handler_create(struct dpa_process *p, const struct dpa_handler_attr *attr,
		       struct dpa_handler **out)
{
	struct dpa_handler *h;
	int ret;

	if (attr->eu > DPA_EU_ANY ||
	    !dpa_image_has(&p->image, attr->function - (uintptr_t)p->region, 1, PROT_EXEC))
		return -EINVAL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->attr = *attr;
	/* The thread's main waits for the lock before it looks at the thread. */
	pthread_mutex_lock(&p->lock);
	ret = dpa_process_thread(p, attr->id, handler_main, h, &h->thread);
	if (ret == 0) {
		h->thread->yield = handler_yield;
		h->thread->stand_in = p->attr.stand_in;
		h->eu = (struct dpa_eu_wait){.thread = h->thread, .eu = attr->eu};
		dpa_eu_join(attr->eu);
	}
	pthread_mutex_unlock(&p->lock);
	if (ret) {
		free(h);
		return ret;
	}
	*out = h;
	return 0;
}

void dpa_handler_destroy(struct dpa_handler *h)
{
	dpa_process_thread_end(h->thread->process, h->thread);
	dpa_eu_leave(h->attr.eu);
	free(h);
}
