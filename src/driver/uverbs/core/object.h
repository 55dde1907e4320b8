/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of a uverbs file: a table from handle to object.  Handles come from the program, so
 * every lookup checks range and type.
 *
 * Writers hold the file's lock.  uobj_peek is for the data path: it takes no lock, and its caller
 * is a reader that holds the object from then on.  An object that has left the table is freed when no
 * reader holds it.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hazard.h"
#include "prm/ib.h"

struct uchannel;
struct ufile;
struct uobj_alike;

enum uobj_type {
	UOBJ_NONE,
	UOBJ_PD,
	UOBJ_MR,
	UOBJ_MW,
	UOBJ_XRCD,
	UOBJ_CQ,
	UOBJ_SRQ,
	UOBJ_QP,
	UOBJ_AH,
	UOBJ_UAR,
	UOBJ_WQ,
	UOBJ_IND_TABLE,
	UOBJ_FLOW,
	UOBJ_DEVX,
	UOBJ_UMEM,
	UOBJ_COUNTERS,
	UOBJ_MATCHER,
	UOBJ_ICM,
	UOBJ_FLOW_ACTION,
	UOBJ_TYPES,
};

struct uobj;

/* What a destroy method answers: how many events the program was told of that nobody took back. */
struct uevents {
	uint32_t comp;
	uint32_t async;
};

/* What a type of object does beyond being in the table; a constant beside its handlers. */
struct uobj_class {
	enum uobj_type type;
	/* Frees the device's part.  obj is unpublished and unused; the caller frees obj itself. */
	void (*free)(struct uobj *obj);
	/* May be missing.  Runs after free: lets go of the object's own channels, and fills in
	 * their events. */
	void (*collect)(struct uobj *obj, struct uevents *events);
	/* May be missing.  Returns the QP that takes the frames of a steering rule that leads to
	 * obj; NULL: none does. */
	struct qp *(*takes_frames)(struct uobj *obj);
	/* May be missing or return NULL: the table, or the counter, that a rule means by obj. */
	struct flow_table *(*table)(struct uobj *obj);
	struct flow_counter *(*counter)(struct uobj *obj);
	/* May be missing.  The number by which commands of DEVX name obj; it stays the same for as
	 * long as obj is published. */
	uint32_t (*number)(struct uobj *obj);
};

struct uobj {
	enum uobj_type type; /* type of its class; for the data path */
	const struct uobj_class *class;
	uint32_t handle;
	uint32_t users; /* objects that name this one; > 0 is busy */
	struct ufile *file;
	struct uobj *alike_next, *alike_prev; /* objects of the same number */
	/* CQ, SRQ and QP: channel of asynchronous events, the name there, and how many went. */
	struct uchannel *async;
	uint64_t user_handle;
	uint32_t async_events; /* under the channel's lock */
};

#define UOBJ_CHUNK_SHIFT 10
#define UOBJ_CHUNK	 (1u << UOBJ_CHUNK_SHIFT)
#define UOBJ_CHUNKS	 (1u << 12)

struct uobj_chunk {
	_Atomic(struct uobj *) slot[UOBJ_CHUNK];
};

struct uobj_table {
	_Atomic(struct uobj_chunk *) chunk[UOBJ_CHUNKS];
	uint32_t limit; /* handles below were given out at least once */
	uint32_t *free; /* stack of handles given back */
	uint32_t nfree;
	uint32_t free_room;
	struct uobj_alike *numbered; /* the file's lock is held by readers, too */
};

/* Gives obj a handle and publishes it: the object must be complete.  -ENOMEM. */
int uobj_publish(struct ufile *file, struct uobj *obj, const struct uobj_class *class) must_check;
/* Makes sure that the next object finds a handle when it is published. */
int uobj_reserve(struct ufile *file) must_check;
/* Takes obj out of the table and waits until no reader holds it; the caller then frees it. */
void uobj_unpublish(struct uobj *obj);
/* NULL with *err -ENOENT (no such handle) or -EINVAL (another type), as in the kernel. */
struct uobj *uobj_find(struct ufile *file, enum uobj_type type, uint64_t handle, int *err);
/* An object of any type; NULL if there is none. */
struct uobj *uobj_any(struct ufile *file, uint64_t handle);
/*
 * Destroys obj and frees it: each record begins with its uobj.  events may be NULL.  -EBUSY while
 * something uses it.
 */
int uobj_destroy(struct uobj *obj, struct uevents *events);
void uobj_table_release(struct uobj_table *t);

/* Remembers where the asynchronous events of obj go: to that channel, or to the file's. */
void uobj_bind_async(struct uobj *obj, struct ufile *file, struct uchannel *channel);
/* Undoes uobj_bind_async for an object that was not published. */
void uobj_unbind_async(struct uobj *obj);
/* The upcall of the device for asynchronous events; user is the uobj. */
void uobj_async(void *user, enum ib_event event);

static inline _Atomic(struct uobj *) *uobj_slot(struct uobj_table *t, uint64_t handle)
{
	struct uobj_chunk *c;

	if (handle >= (uint64_t)UOBJ_CHUNKS * UOBJ_CHUNK)
		return NULL;
	c = atomic_load_explicit(&t->chunk[handle >> UOBJ_CHUNK_SHIFT], memory_order_acquire);
	return c ? &c->slot[handle & (UOBJ_CHUNK - 1)] : NULL;
}

static inline struct uobj *uobj_peek(struct uobj_table *t, enum uobj_type type, uint32_t handle)
{
	_Atomic(struct uobj *) *slot = uobj_slot(t, handle);
	struct uobj *obj = slot ? hazard_take(slot) : NULL;

	return obj && obj->type == type ? obj : NULL;
}

/* ---- the objects of a file by their numbers ---- */

/*
 * The numbers are those that commands of DEVX name objects by.  Kinds count separately, so a number
 * may be that of an object of each kind.  Under the file's lock.
 */

/* The first object that has the number, in the order in which they were published; the others
 * follow by their alike_next.  NULL: none has it. */
struct uobj *uobj_numbered(struct uobj_table *t, uint32_t number);
