// SPDX-License-Identifier: BSD-2-Clause
/*
 * The objects that programs may name, who holds which, and aliases of processes and threads in
 * other contexts.
 */
#include <errno.h>
#include <stdlib.h>

#include "prm/cmd.h"

/* Without memory an object is not in the table, and is found in the list. */
#define HASH_NONFATAL_OOM 1
#include "flexio/internal.h"

/* ---- objects ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t nobody = PTHREAD_COND_INITIALIZER; /* somebody let an object go */
/* Lists by kind, the youngest object first. */
static struct flx_object *objects[FLX_KINDS];
/* The same objects by their addresses, because programs destroy thousands in any order. */
static struct flx_object *by_address;

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
	[FLX_EMULATED_DB] = "context of an emulated doorbell",
	[FLX_RQ] = "receive queue",
	[FLX_SQ] = "send queue",
	[FLX_RMP] = "receive memory pool",
	[FLX_QP] = "queue pair",
};

void flx_objects_lock(void)
{
	pthread_mutex_lock(&lock);
}

void flx_objects_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void object_list(struct flx_object *o)
{
	o->prev = NULL;
	o->next = objects[o->kind];
	if (o->next)
		o->next->prev = o;
	objects[o->kind] = o;
	o->self = o;
	HASH_ADD_PTR(by_address, self, o);
	flx_log(FLEXIO_LOG_LVL_DBG, "%s %p is there", kind_names[o->kind], (void *)o);
}

static void object_unlist(struct flx_object *o)
{
	flx_log(FLEXIO_LOG_LVL_DBG, "%s %p goes", kind_names[o->kind], (void *)o);
	if (o->next)
		o->next->prev = o->prev;
	if (o->prev)
		o->prev->next = o->next;
	else
		objects[o->kind] = o->next;
	if (o->hh.tbl)
		HASH_DEL(by_address, o);
}

void flx_object_add(struct flx_object *o, enum flx_kind kind, struct flexio_process *process)
{
	o->kind = kind;
	/* A stream has its process from the beginning, and a thread may be reading that. */
	if (o->process != process)
		o->process = process;
	flx_objects_lock();
	object_list(o);
	flx_objects_unlock();
}

/* Waits until *users is 0.  The lock is held, and given back meanwhile. */
static void object_await(const uint32_t *users)
{
	while (*users)
		pthread_cond_wait(&nobody, &lock);
}

void flx_object_remove(struct flx_object *o)
{
	flx_objects_lock();
	object_unlist(o);
	object_await(&o->users);
	flx_objects_unlock();
}

struct flx_object *flx_object_next(enum flx_kind kind, const struct flx_object *before)
{
	return before ? before->next : objects[kind];
}

/* ---- who holds what ---- */

static void users_add(struct flx_object *o, int n)
{
	o->users += (uint32_t)n;
	if (!o->users)
		pthread_cond_broadcast(&nobody);
}

void flx_hold_add(struct flx_hold *hold, struct flx_object *o)
{
	users_add(o, 1);
	if (o->process)
		users_add(&o->process->object, 1);
	hold->object[hold->n++] = o;
}

void flx_hold_call(struct flx_hold *hold)
{
	flx_objects_lock();
	users_add(hold->object[0], -1);
	hold->object[0]->calls++;
	hold->calls = true;
	flx_objects_unlock();
}

bool flx_leaving(const struct flexio_process *process)
{
	bool leaving;

	flx_objects_lock();
	leaving = process->object.leaving;
	flx_objects_unlock();
	return leaving;
}

void flx_calls_await(struct flexio_process *process)
{
	flx_objects_lock();
	object_await(&process->object.calls);
	flx_objects_unlock();
}

void flx_hold_end(struct flx_hold *hold)
{
	if (!hold->n)
		return;
	flx_objects_lock();
	for (uint32_t i = 0; i < hold->n; i++) {
		struct flx_object *o = hold->object[i];

		if (o->process)
			users_add(&o->process->object, -1);
		if (i || !hold->calls)
			users_add(o, -1);
		else if (!--o->calls)
			pthread_cond_broadcast(&nobody);
	}
	*hold = (struct flx_hold){0};
	flx_objects_unlock();
}

/*
 * Finds an object.  The lock is held.  It compares the pointer and does not look into it, because
 * it may point to anything.
 */
static struct flx_object *object_find(const void *object, enum flx_kind kind)
{
	struct flx_object *o;

	HASH_FIND_PTR(by_address, &object, o);
	if (!o)
		for (o = objects[kind]; o && (const void *)o != object; o = o->next)
			;
	if (o && o->kind != kind)
		return NULL;
	return o && o->process && o->process->object.leaving ? NULL : o;
}

bool flx_given(const void *pointer, const char *function, const char *argument)
{
	if (!pointer)
		flx_fail(function, "%s is NULL", argument);
	return pointer != NULL;
}

static bool object_unknown(const void *object, enum flx_kind kind, const char *function,
			   const char *argument)
{
	flx_fail(function, "%s: %p is no %s, or one that was destroyed", argument, object,
		 kind_names[kind]);
	return false;
}

bool flx_check(struct flx_hold *hold, const void *object, enum flx_kind kind, const char *function,
	       const char *argument)
{
	struct flx_object *o;

	if (!flx_given(object, function, argument))
		return false;
	flx_objects_lock();
	o = object_find(object, kind);
	if (o)
		flx_hold_add(hold, o);
	flx_objects_unlock();
	return o || object_unknown(object, kind, function, argument);
}

bool flx_claim(struct flx_hold *hold, void *object, enum flx_kind kind, const char *function,
	       const char *argument)
{
	struct flx_object *o;

	if (!flx_given(object, function, argument))
		return false;
	flx_objects_lock();
	o = object_find(object, kind);
	if (o) {
		object_unlist(o);
		/* The function also holds the process for as long as this takes. */
		if (o->process)
			flx_hold_add(hold, &o->process->object);
		o->leaving = kind == FLX_PROCESS;
		object_await(&o->users);
	}
	flx_objects_unlock();
	return o || object_unknown(object, kind, function, argument);
}

/* Objects that others are made of come last. */
static const enum flx_kind drop_order[] = {
	FLX_STREAM, FLX_CMDQ,	     FLX_RQ,	 FLX_SQ,     FLX_QP,
	FLX_RMP,    FLX_EMULATED_DB, FLX_CQ,	 FLX_THREAD, FLX_EVENT_HANDLER,
	FLX_MKEY,   FLX_WINDOW,	     FLX_OUTBOX, FLX_UAR};

/* Takes an object off the list.  Nobody else holds it, because the process is leaving. */
static struct flx_object *object_take(enum flx_kind kind, const struct flexio_process *process)
{
	struct flx_object *o;

	flx_objects_lock();
	for (o = objects[kind]; o && (o->process != process || !o->destroy); o = o->next)
		;
	if (o)
		object_unlist(o);
	flx_objects_unlock();
	return o;
}

void flx_objects_drop(struct flexio_process *process)
{
	for (size_t i = 0; i < array_size(drop_order); i++) {
		struct flx_object *o;

		while ((o = object_take(drop_order[i], process)))
			o->destroy(o);
	}
}

/* ---- aliases ---- */

/*
 * An object of another context that stands there for a process, or for a thread of it.  The device
 * finds it by number alone, so all objects of a context share one, and it goes with the last of
 * them.
 */

struct flx_alias {
	struct flx_alias *next;
	struct ibv_context *ctx;
	const struct flexio_process *process;
	uint32_t thread, users;
	struct mlx5dv_devx_obj *devx;
};

/* Held while the device makes and destroys aliases, so that nobody finds one that goes. */
static pthread_mutex_t alias_lock = PTHREAD_MUTEX_INITIALIZER;
static struct flx_alias *aliases;

static struct flx_alias *alias_find(struct ibv_context *ctx, const struct flexio_process *process,
				    uint32_t thread)
{
	struct flx_alias *a = aliases;

	while (a && (a->ctx != ctx || a->process != process || a->thread != thread))
		a = a->next;
	return a;
}

static struct flx_alias *alias_make(struct ibv_context *ctx, const struct flexio_process *process,
				    uint32_t thread)
{
	uint8_t in[DPA_ALIAS_IN_BYTES] = {0};
	struct flx_alias *a = calloc(1, sizeof(*a));
	uint32_t number;
	int err;

	if (!a)
		return NULL;
	*a = (struct flx_alias){.ctx = ctx, .process = process, .thread = thread, .next = aliases};
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_ALIAS);
	prm_set(in, DPA_ALIAS_NUMBER, thread ? thread : process->number);
	prm_set(in, DPA_ALIAS_THREAD, thread != 0);
	a->devx = flx_devx_create(ctx, in, sizeof(in), &number);
	if (!a->devx) {
		err = errno;
		free(a);
		errno = err;
		return NULL;
	}
	aliases = a;
	return a;
}

struct flx_alias *flx_alias_get(struct ibv_context *ctx, const struct flexio_process *process,
				uint32_t thread)
{
	struct flx_alias *a;

	pthread_mutex_lock(&alias_lock);
	a = alias_find(ctx, process, thread);
	if (!a)
		a = alias_make(ctx, process, thread);
	if (a)
		a->users++;
	pthread_mutex_unlock(&alias_lock);
	return a;
}

void flx_alias_put(struct flx_alias *alias)
{
	struct flx_alias **at = &aliases;

	if (!alias)
		return;
	pthread_mutex_lock(&alias_lock);
	if (!--alias->users) {
		while (*at != alias)
			at = &(*at)->next;
		*at = alias->next;
		/* This fails if something that the program itself made still names it. */
		(void)mlx5dv_devx_obj_destroy(alias->devx);
		free(alias);
	}
	pthread_mutex_unlock(&alias_lock);
}
