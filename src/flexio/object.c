// SPDX-License-Identifier: BSD-2-Clause
/* The list of all objects that programs may name. */
#include "flexio/internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The youngest first. */
static struct flx_object *objects[FLX_KINDS];

static const char *const kind_names[FLX_KINDS] = {
	[FLX_APP] = "application",
	[FLX_PROCESS] = "process",
	[FLX_STREAM] = "message stream",
	[FLX_CMDQ] = "command queue",
	[FLX_WINDOW] = "window",
	[FLX_OUTBOX] = "outbox",
	[FLX_UAR] = "UAR",
	[FLX_EVENT_HANDLER] = "event handler",
	[FLX_THREAD] = "thread",
	[FLX_MKEY] = "memory key",
	[FLX_CQ] = "completion queue",
};

void flx_objects_lock(void)
{
	pthread_mutex_lock(&lock);
}

void flx_objects_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void flx_object_add(struct flx_object *o, enum flx_kind kind, struct flexio_process *process)
{
	o->kind = kind;
	o->process = process;
	flx_objects_lock();
	o->prev = NULL;
	o->next = objects[kind];
	if (o->next)
		o->next->prev = o;
	objects[kind] = o;
	flx_objects_unlock();
	flx_log(FLEXIO_LOG_LVL_DBG, "%s %p is there", kind_names[kind], (void *)o);
}

void flx_object_remove(struct flx_object *o)
{
	flx_log(FLEXIO_LOG_LVL_DBG, "%s %p goes", kind_names[o->kind], (void *)o);
	flx_objects_lock();
	if (o->next)
		o->next->prev = o->prev;
	if (o->prev)
		o->prev->next = o->next;
	else
		objects[o->kind] = o->next;
	flx_objects_unlock();
}

struct flx_object *flx_object_next(enum flx_kind kind, const struct flx_object *before)
{
	return before ? before->next : objects[kind];
}

bool flx_is(const void *object, enum flx_kind kind)
{
	const struct flx_object *o;

	flx_objects_lock();
	/* Compared, not looked into: it may be anything. */
	for (o = objects[kind]; o && (const void *)o != object; o = o->next)
		;
	flx_objects_unlock();
	return o != NULL;
}

bool flx_given(const void *pointer, const char *function, const char *argument)
{
	if (!pointer)
		flx_fail(function, "%s is NULL", argument);
	return pointer != NULL;
}

bool flx_check(const void *object, enum flx_kind kind, const char *function, const char *argument)
{
	if (!flx_given(object, function, argument))
		return false;
	if (flx_is(object, kind))
		return true;
	flx_fail(function, "%s: %p is no %s, or one that was destroyed", argument, object,
		 kind_names[kind]);
	return false;
}

/* Those that others are made of come last. */
static const enum flx_kind drop_order[] = {FLX_STREAM, FLX_CMDQ,	  FLX_CQ,
					   FLX_THREAD, FLX_EVENT_HANDLER, FLX_MKEY,
					   FLX_WINDOW, FLX_OUTBOX,	  FLX_UAR};

static struct flx_object *object_of(enum flx_kind kind, const struct flexio_process *process)
{
	struct flx_object *o;

	flx_objects_lock();
	for (o = objects[kind]; o && (o->process != process || !o->destroy); o = o->next)
		;
	flx_objects_unlock();
	return o;
}

void flx_objects_drop(struct flexio_process *process)
{
	for (size_t i = 0; i < array_size(drop_order); i++) {
		struct flx_object *o;

		while ((o = object_of(drop_order[i], process)))
			o->destroy(o);
	}
}
