// SPDX-License-Identifier: BSD-2-Clause
/* The objects of a file: by handle and by number. */
#include "driver/uverbs/core/object.h"

#include <errno.h>
#include <stdlib.h>

#include "base/explain.h"
#include "base/hazard.h"
#include "driver/uverbs/core/event.h"
#include "driver/uverbs/core/file.h"

/* ---- numbers ---- */

/* An object without memory for its number is not published. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

/* Those that share a number, which are no more than there are kinds. */
struct uobj_alike {
	uint32_t number;
	struct uobj *first;
	UT_hash_handle hh;
};

static struct uobj_alike *alike_find(struct uobj_table *t, uint32_t number)
{
	struct uobj_alike *a;

	HASH_FIND(hh, t->numbered, &number, sizeof(number), a);
	return a;
}

static struct uobj_alike *alike_make(struct uobj_table *t, uint32_t number)
{
	struct uobj_alike *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->number = number;
	HASH_ADD(hh, t->numbered, number, sizeof(number), a);
	if (a->hh.tbl)
		return a;
	free(a);
	return NULL;
}

/* obj has its class.  Does nothing if the class has no numbers.  -ENOMEM. */
static must_check int uobj_number_add(struct uobj_table *t, struct uobj *obj)
{
	struct uobj_alike *a;
	uint32_t number;

	if (!obj->class->number)
		return 0;
	number = obj->class->number(obj);
	a = alike_find(t, number);
	if (!a)
		a = alike_make(t, number);
	if (!a)
		return -ENOMEM;
	DL_APPEND2(a->first, obj, alike_prev, alike_next);
	return 0;
}

static void uobj_number_remove(struct uobj_table *t, struct uobj *obj)
{
	struct uobj_alike *a;

	if (!obj->class->number)
		return;
	a = alike_find(t, obj->class->number(obj));
	DL_DELETE2(a->first, obj, alike_prev, alike_next);
	if (a->first)
		return;
	HASH_DEL(t->numbered, a);
	free(a);
}

struct uobj *uobj_numbered(struct uobj_table *t, uint32_t number)
{
	const struct uobj_alike *a = alike_find(t, number);

	return a ? a->first : NULL;
}

/* ---- handles ---- */

/* Makes room for giving the handle back when it is taken, because giving back must not fail. */
static int free_list_reserve(struct uobj_table *t)
{
	uint32_t room = t->free_room ? t->free_room * 2 : UOBJ_CHUNK;
	uint32_t *grown;

	if (t->limit < t->free_room)
		return 0;
	grown = realloc(t->free, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	t->free = grown;
	t->free_room = room;
	return 0;
}

/* Makes sure that a handle can be taken. */
static int handle_reserve(struct uobj_table *t)
{
	uint32_t index = t->limit >> UOBJ_CHUNK_SHIFT;
	struct uobj_chunk *c;

	if (t->nfree)
		return 0;
	if (index >= UOBJ_CHUNKS || free_list_reserve(t) < 0)
		return -ENOMEM;
	if (!atomic_load_explicit(&t->chunk[index], memory_order_relaxed)) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return -ENOMEM;
		atomic_store_explicit(&t->chunk[index], c, memory_order_release);
	}
	return 0;
}

static int64_t handle_take(struct uobj_table *t)
{
	int ret = handle_reserve(t);

	if (ret < 0)
		return ret;
	return t->nfree ? t->free[--t->nfree] : t->limit++;
}

int uobj_reserve(struct ufile *file)
{
	return handle_reserve(&file->objects);
}

int uobj_publish(struct ufile *file, struct uobj *obj, const struct uobj_class *class)
{
	struct uobj_table *t = &file->objects;
	int64_t handle;
	int ret;

	obj->type = class->type;
	obj->class = class;
	ret = uobj_number_add(t, obj);
	if (ret < 0)
		return ret;
	handle = handle_take(t);
	if (handle < 0) {
		uobj_number_remove(t, obj);
		return (int)handle;
	}
	obj->handle = (uint32_t)handle;
	obj->file = file;
	/* The release pairs with the acquire of uobj_peek on a thread that rings a doorbell. */
	atomic_store_explicit(uobj_slot(t, obj->handle), obj, memory_order_release);
	return 0;
}

void uobj_unpublish(struct uobj *obj)
{
	struct uobj_table *t = &obj->file->objects;

	uobj_number_remove(t, obj);
	atomic_store_explicit(uobj_slot(t, obj->handle), NULL, memory_order_release);
	hazard_wait(obj, sizeof(*obj));
	t->free[t->nfree++] = obj->handle;
}

struct uobj *uobj_any(struct ufile *file, uint64_t handle)
{
	_Atomic(struct uobj *) *slot = uobj_slot(&file->objects, handle);

	return slot ? atomic_load_explicit(slot, memory_order_relaxed) : NULL;
}

struct uobj *uobj_find(struct ufile *file, enum uobj_type type, uint64_t handle, int *err)
{
	struct uobj *obj = uobj_any(file, handle);

	if (!obj) {
		*err = -ENOENT;
		return NULL;
	}
	if (obj->type != type) {
		*err = -EINVAL;
		return NULL;
	}
	return obj;
}

void uobj_table_release(struct uobj_table *t)
{
	for (unsigned i = 0; i < UOBJ_CHUNKS; i++)
		free(atomic_load_explicit(&t->chunk[i], memory_order_relaxed));
	free(t->free);
}

/* ---- destruction ---- */

static void async_collect(struct uobj *obj, struct uevents *events)
{
	uint32_t taken;

	if (!obj->async)
		return;
	taken = uchannel_purge(obj->async, obj->user_handle);
	events->async = obj->async_events - min_u32(taken, obj->async_events);
	uobj_unbind_async(obj);
}

int uobj_destroy(struct uobj *obj, struct uevents *events)
{
	const struct uobj_class *class = obj->class;
	struct uevents mine = {0};

	if (obj->users)
		return explained(-EBUSY, "%u objects use it: they have to be destroyed first",
				 obj->users);
	uobj_unpublish(obj);
	/* The device's part goes first, because after it no upcall can count another event. */
	class->free(obj);
	async_collect(obj, &mine);
	if (class->collect)
		class->collect(obj, &mine);
	free(obj);
	if (events)
		*events = mine;
	return 0;
}

/* ---- asynchronous events ---- */

void uobj_bind_async(struct uobj *obj, struct ufile *file, struct uchannel *channel)
{
	obj->async = channel ? channel : file->async;
	if (obj->async)
		cdev_hold(uchannel_cdev(obj->async));
}

void uobj_unbind_async(struct uobj *obj)
{
	if (obj->async)
		cdev_put(uchannel_cdev(obj->async));
	obj->async = NULL;
}

void uobj_async(void *user, enum ib_event event)
{
	struct uobj *obj = user;

	if (obj->async)
		uchannel_post_async(obj->async, obj->user_handle, event, &obj->async_events);
}
