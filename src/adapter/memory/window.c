// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/memory/window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/explain.h"
#include "base/hazard.h"

/* A bound window.  The fields are atomic only so that a torn read does no harm: the reader drops
 * what it has read if the sequence number has changed. */
struct contents {
	_Atomic(uint32_t) key; /* means something only while bound */
	_Atomic(uint32_t) bound;
	_Atomic(uint32_t) qpn; /* type 2 */
	_Atomic(uint32_t) access;
	_Atomic(uint64_t) iova;
	_Atomic(uint64_t) length;
	_Atomic(uint32_t) mr_key;
	_Atomic(uint64_t) mr_va;
};

struct window {
	struct mkey_meaning meaning; /* published */
	enum window_type type;
	uint32_t key;	       /* as allocated */
	struct spin lock;      /* held to change the window */
	_Atomic(uint32_t) seq; /* odd while the contents change */
	struct contents now;
	/* Type 1: how many threads look or copy, by the phase in which they came. */
	_Atomic(uint32_t) phase;
	_Atomic(uint32_t) users[2];
};

/* A consistent copy of the contents. */
struct look {
	uint32_t key;
	uint32_t qpn;
	uint32_t access;
	bool bound;
	uint64_t iova;
	uint64_t length;
	uint32_t mr_key;
	uint64_t mr_va;
};

#define GET(field)    atomic_load_explicit(&w->now.field, memory_order_relaxed)
#define SET(field, v) atomic_store_explicit(&w->now.field, (v), memory_order_relaxed)

static void window_look_at(const struct window *w, struct look *out)
{
	uint32_t seq;

	do {
		while ((seq = atomic_load_explicit(&w->seq, memory_order_acquire)) & 1)
			cpu_relax();
		*out = (struct look){
			.key = GET(key),
			.qpn = GET(qpn),
			.access = GET(access),
			.bound = GET(bound),
			.iova = GET(iova),
			.length = GET(length),
			.mr_key = GET(mr_key),
			.mr_va = GET(mr_va),
		};
		/* Reads the fields before the second look at the number; partner:
		 * window_change_begin. */
		atomic_thread_fence(memory_order_acquire);
	} while (atomic_load_explicit(&w->seq, memory_order_relaxed) != seq);
}

static void window_change_begin(struct window *w)
{
	uint32_t seq = atomic_load_explicit(&w->seq, memory_order_relaxed);

	atomic_store_explicit(&w->seq, seq + 1, memory_order_relaxed);
	/* Stores the odd number before the fields; partner: window_look_at. */
	atomic_thread_fence(memory_order_release);
}

static void window_change_end(struct window *w)
{
	uint32_t seq = atomic_load_explicit(&w->seq, memory_order_relaxed);

	atomic_store_explicit(&w->seq, seq + 1, memory_order_release);
}

/* Comes before a look.  The caller holds the responder's lock from here to the end of the copy. */
static void window_enter(struct window *w, struct mkey_stay *stay)
{
	_Atomic(uint32_t) *in = &w->users[atomic_load(&w->phase) & 1];

	if (stay->in == &w->users[0] || stay->in == &w->users[1])
		return;
	mkey_stay_end(stay);
	atomic_fetch_add(in, 1);
	stay->in = in;
	/* Counts before it looks; partner: window_wait. */
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * Called when the contents have changed: waits until nobody uses the former ones.  Threads that
 * come from now on count in the other phase, so that a stream of them does not make us wait for
 * ever.  A thread that has looked at the phase before may count in it late, so it takes two turns.
 *
 * Any QP of the domain may use a type 1 window.  Its responder holds its lock meanwhile, and
 * nothing under that lock waits for a requester or for a window of type 1.  A type 2 window has one
 * QP, and a thread that invalidates the window waits for that QP's lock.  The caller holds the
 * window's lock.
 */
static void window_wait(struct window *w)
{
	unsigned round = 0;

	if (w->type != WINDOW_TYPE_1)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	for (int turn = 0; turn < 2; turn++) {
		uint32_t before = atomic_fetch_xor(&w->phase, 1) & 1;

		while (atomic_load_explicit(&w->users[before], memory_order_acquire)) {
			if (++round % 256)
				cpu_relax();
			else
				sched_yield();
		}
	}
}

/* The caller holds the lock, or nobody else knows the window. */
static void window_set_unbound(struct window *w)
{
	window_change_begin(w);
	SET(bound, false);
	window_change_end(w);
	window_wait(w);
}

int window_create(struct adapter *a, uint32_t pdn, enum window_type type, struct window **out)
{
	struct window *w;
	int64_t index;

	if (type != WINDOW_TYPE_1 && type != WINDOW_TYPE_2)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	index = number_take(&a->mkeys, &a->attr, NUMBER_MKEY);
	if (index < 0) {
		free(w);
		return (int)index;
	}
	w->type = type;
	w->key = (uint32_t)index << 8 | atomic_fetch_add(&a->key_variant, 1);
	w->meaning = (struct mkey_meaning){
		.region_key = MKEY_NO_REGION,
		.pdn = pdn,
		.ops = &window_ops,
	};
	number_publish(&a->mkeys, (uint32_t)index, &w->meaning);
	expose_note_key(wire_expose(a->wire), &(struct key_block){
						      .key = w->key,
						      .pdn = pdn,
						      .place.why = KEY_WHY_WINDOW,
					      });
	*out = w;
	return 0;
}

uint32_t window_key(const struct window *w)
{
	return w->key;
}

void window_destroy(struct adapter *a, struct window *w)
{
	number_publish(&a->mkeys, w->key >> 8, NULL);
	hazard_wait(&w->meaning, 1);
	window_set_unbound(w);
	expose_note_key_end(wire_expose(a->wire), w->key);
	number_give(&a->mkeys, w->key >> 8);
	w->meaning.ops->release(&w->meaning);
}

static struct window *window_find(struct adapter *a, uint32_t key)
{
	struct mkey_meaning *m = number_find(&a->mkeys, key >> 8);

	return m && m->ops == &window_ops ? container_of(m, struct window, meaning) : NULL;
}

static bool window_refuse(uint32_t key, const char *why)
{
	return explained(false, "memory window 0x%x: %s", key, why);
}

static bool window_bind_locked(struct window *w, const struct window_bind *b)
{
	/* A type 2 window can be bound only in the invalid state (IBTA 10.6.7). */
	if (w->type == WINDOW_TYPE_2 && GET(bound))
		return window_refuse(b->key, "bind of a type 2 window that is bound");
	window_change_begin(w);
	SET(key, (b->key & ~0xffu) | b->variant);
	SET(qpn, b->qpn);
	SET(access, b->access);
	SET(iova, b->iova);
	SET(length, b->length);
	SET(mr_key, b->mr_key);
	SET(mr_va, b->mr_va);
	SET(bound, true);
	window_change_end(w);
	window_wait(w);
	return true;
}

bool window_bind(struct adapter *a, const struct window_bind *b)
{
	struct window *w = window_find(a, b->key);
	bool ok;

	if (!w)
		return window_refuse(b->key, "bind of a key that is no window");
	if (w->meaning.pdn != b->pdn)
		return window_refuse(b->key, "bind by a QP of another protection domain");
	if (w->type != b->type)
		return window_refuse(b->key, "bind as a window of the other type");
	spin_lock(&w->lock);
	ok = window_bind_locked(w, b);
	spin_unlock(&w->lock);
	return ok;
}

bool window_unbind(struct adapter *a, uint32_t key, uint32_t pdn)
{
	struct window *w = window_find(a, key);

	if (!w || w->type != WINDOW_TYPE_1)
		return window_refuse(key, "bind of no bytes for a key that is no type 1 window");
	if (w->meaning.pdn != pdn)
		return window_refuse(key, "bind by a QP of another protection domain");
	spin_lock(&w->lock);
	window_set_unbound(w);
	spin_unlock(&w->lock);
	return true;
}

static enum mkey_verdict window_invalidate(struct mkey_meaning *m, const struct mkey_use *u)
{
	struct window *w = container_of(m, struct window, meaning);
	enum mkey_verdict v = MKEY_OK;

	/* Only a bind of no bytes invalidates a type 1 window (IBTA 10.6.7). */
	if (w->type != WINDOW_TYPE_2)
		return MKEY_NO_RIGHT;
	if (w->meaning.pdn != u->pdn)
		return MKEY_WRONG_PD;
	spin_lock(&w->lock);
	if (!GET(bound) || GET(key) != u->key)
		v = MKEY_NO_KEY;
	else if (GET(qpn) != u->qpn)
		v = MKEY_NO_RIGHT;
	else
		window_set_unbound(w);
	spin_unlock(&w->lock);
	return v;
}

#define WRITING (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

/* Type 2B: only the QP that has bound the window may use it (IBTA 10.6.7). */
static enum mkey_verdict window_check_qp(const struct window *w, uint32_t bound_by, uint32_t user)
{
	if (w->type == WINDOW_TYPE_1 || bound_by == user)
		return MKEY_OK;
	return user == MKEY_ANY_QPN ? MKEY_BOUND : MKEY_NO_RIGHT;
}

/*
 * Resolves an access.  As on cards a bind does not look at the region: only an access finds that the
 * region is gone, is not writable, or ends before the window does.  The process may also name the
 * window in its own lists, to read and, if the bind gave local write, to write: the kernel makes the
 * keys of windows with local read (mkc.lr), and libmlx5 leaves that bit as it is.  Such an access does
 * not count as a user of a type 1 window; the region is protected as in any other local access.
 */
static enum mkey_verdict window_resolve(struct adapter *a, struct mkey_meaning *m,
					const struct mkey_use *u, uint64_t va, uint64_t len,
					struct runs *runs)
{
	struct window *w = container_of(m, struct window, meaning);
	struct mkey_use region = {.pdn = w->meaning.pdn, .qpn = MKEY_ANY_QPN};
	enum mkey_verdict v;
	struct look now;

	/* Through a list, a peer could use a window of type 1 without being counted. */
	if (u->listed)
		return MKEY_NO_KEY;
	if (w->type == WINDOW_TYPE_1 && u->remote)
		window_enter(w, u->remote);
	window_look_at(w, &now);
	if (!now.bound || now.key != u->key)
		return MKEY_NO_KEY;
	if (w->meaning.pdn != u->pdn)
		return MKEY_WRONG_PD;
	v = window_check_qp(w, now.qpn, u->qpn);
	if (v != MKEY_OK)
		return v;
	if ((now.access & u->access) != u->access)
		return MKEY_NO_RIGHT;
	if (!range_inside(va - now.iova, len, now.length))
		return MKEY_OUT_OF_RANGE;
	/* Neither the null key nor a list has windows. */
	if (!mkey_is_region(a, now.mr_key))
		return MKEY_NO_KEY;
	region.key = now.mr_key;
	region.access = u->access & WRITING ? IB_ACCESS_LOCAL_WRITE : 0;
	v = mkey_resolve(a, &region, now.mr_va + (va - now.iova), len, runs);
	/* as for the entries of a list */
	return v == MKEY_SIGNED || v == MKEY_BOUND ? MKEY_NO_RIGHT : v;
}

static void window_release(struct mkey_meaning *m)
{
	free(container_of(m, struct window, meaning));
}

const struct mkey_ops window_ops = {
	.resolve = window_resolve,
	.invalidate = window_invalidate,
	.release = window_release,
};
