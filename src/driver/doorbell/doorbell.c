// SPDX-License-Identifier: BSD-2-Clause
/* The pages, the queues that use them, and the look at the registers.  See doorbell.h. */
#include "driver/doorbell/doorbell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "base/vma.h"
#include "driver/doorbell/page.h"
#include "prm/uar.h"
#include "prm/wqe.h"

/* Queues that share a page are served in portions of this many, lest the named ones wait. */
#define SERVE_AT_ONCE 8u
/* A store that faults does not tell which queue it names, and if some queues are left over,
 * somebody has to wake the engine.  A look at a queue without work takes a hundredth of a fault. */
#define SERVE_IN_FAULT 64u

/*
 * With hooks, the first store to an UNKNOWN page may be one that its hook is just about to
 * announce; the hook would have come before a second store.
 */
#define STORES_OF_A_DIRECT_USER 2u

struct doorbell_load doorbell_load;
struct doorbell_set doorbell_set;

/* A queue that was taken over outweighs what hooks say of the others. */
static enum doorbell_state page_state(const struct doorbell_page *page)
{
	if (atomic_load_explicit(&page->announced, memory_order_relaxed))
		return DOORBELL_DIRECT;
	return (enum doorbell_state)atomic_load_explicit(&page->state, memory_order_relaxed);
}

bool doorbell_is_direct(const struct doorbell_page *page)
{
	return page_state(page) == DOORBELL_DIRECT;
}

static void set_state(struct doorbell_page *page, enum doorbell_state state)
{
	atomic_store_explicit(&page->state, state, memory_order_relaxed);
}

/* ---- registers ---- */

static _Atomic(uint64_t) *reg_at(const struct doorbell_page *page, size_t off)
{
	return (_Atomic(uint64_t) *)(void *)(page->attr.regs + off);
}

/* The load is an acquire, because the program wrote the ring and its record before the register. */
static uint64_t page_peek(const struct doorbell_page *page, size_t off)
{
	return atomic_load_explicit(reg_at(page, off), memory_order_acquire);
}

/* Takes the value out, so that the same value, stored after a reset of the queue, is new. */
static uint64_t page_take(const struct doorbell_page *page, size_t off)
{
	return atomic_exchange_explicit(reg_at(page, off), 0, memory_order_acquire);
}

/* ---- which pages are looked at ---- */

static bool is_watched(const struct doorbell_page *page)
{
	return !page->gone && page_state(page) != DOORBELL_HOOKED &&
	       (page->attr.look || page->group[DOORBELL_SQ].count ||
		page->group[DOORBELL_CQ].count || page->group[DOORBELL_EQ].count);
}

/* Takes pages off the list that need not be in it, and counts the others. */
static void pages_recount(void)
{
	struct doorbell_page **at = &doorbell_set.watched;
	uint32_t watched = 0, direct = 0;

	while (*at) {
		struct doorbell_page *page = *at;

		if (!is_watched(page)) {
			*at = page->next_watched;
			page->listed = false;
			continue;
		}
		watched++;
		direct += page_state(page) == DOORBELL_DIRECT;
		at = &page->next_watched;
	}
	atomic_store_explicit(&doorbell_load.watched, watched, memory_order_relaxed);
	atomic_store_explicit(&doorbell_load.direct, direct, memory_order_relaxed);
}

/* Drops what was stored while nobody looked; the records still tell of it. */
static void clear_registers(struct doorbell_page *page)
{
	for (unsigned half = 0; half < UAR_SQ_HALVES; half++)
		if (page_take(page, UAR_SQ + half * UAR_SQ_HALF))
			page->group[DOORBELL_SQ].left = page->group[DOORBELL_SQ].count;
	atomic_store_explicit(&page->stale, false, memory_order_relaxed);
}

/* Set lock held: the state or the queues of a page have changed.  True: the caller should tell the
 * engine. */
static bool doorbell_page_changed(struct doorbell_page *page)
{
	bool watched = is_watched(page), fresh = watched && !page->listed;

	if (watched && !page->attr.look &&
	    (fresh || atomic_load_explicit(&page->stale, memory_order_relaxed)))
		clear_registers(page);
	if (fresh) {
		page->next_watched = doorbell_set.watched;
		doorbell_set.watched = page;
		page->listed = true;
	}
	pages_recount();
	return fresh;
}

/*
 * Counts the caller before it looks, because whoever takes the engine away waits for all callers
 * that may have seen it.
 */
void doorbell_tell_engine(void)
{
	const struct doorbell_engine *engine;

	atomic_fetch_add(&doorbell_set.telling, 1);
	engine = atomic_load(&doorbell_set.engine);
	if (engine)
		engine->kick(engine->user);
	atomic_fetch_sub(&doorbell_set.telling, 1);
}

/* An engine that sleeps has not protected a fresh page, so it has to wake. */
static void tell_engine(bool fresh)
{
	if (fresh)
		doorbell_tell_engine();
}

/* ---- pages ---- */

/* Set lock held: drops a reference to the page; the last one frees it. */
static void doorbell_page_put(struct doorbell_page *page)
{
	if (!--page->refs)
		free(page);
}

/* ---- registers of send queues ---- */

void doorbell_serve_named(struct doorbell_page *page, uint64_t value)
{
	struct wqe_ctrl head = {0};
	uint16_t pi;

	memcpy(&head, &value, sizeof(value));
	pi = (uint16_t)(wqe_index(&head) + div_round_up(wqe_ds(&head), WQE_BLOCK / WQE_UNIT));
	trace(doorbell, noticed, "look", "SQ", wqe_qpn(&head));
	page->attr.ring(page->attr.user, wqe_qpn(&head), pi);
}

/*
 * Serves the named queue before it takes the value out: a write to the register's line takes as
 * long as a fetch of all that the request consists of, and the program waits for the request.  The
 * look at all queues, after that, finds what the program rings in between.
 */
static bool look_at_sqs(struct doorbell_page *page)
{
	struct doorbell_group *g = &page->group[DOORBELL_SQ];
	bool found = false;

	for (unsigned half = 0; half < UAR_SQ_HALVES; half++) {
		size_t off = UAR_SQ + half * UAR_SQ_HALF;
		uint64_t first = page_peek(page, off), last;

		if (likely(!first))
			continue;
		doorbell_serve_named(page, first);
		last = page_take(page, off);
		if (unlikely(last != first))
			doorbell_serve_named(page, last);
		g->left = g->count;
		found = true;
	}
	return found;
}

/* ---- queues ---- */

void doorbell_user_init(struct doorbell_user *u, enum doorbell_kind kind, const uint8_t *regs,
			void (*ring)(struct doorbell_user *u))
{
	struct doorbell_page *page;

	*u = (struct doorbell_user){.kind = kind, .ring = ring};
	spin_lock(&doorbell_set.lock);
	for (page = doorbell_set.pages; page && page->attr.regs != regs; page = page->next)
		;
	if (page)
		page->refs++;
	u->page = page;
	spin_unlock(&doorbell_set.lock);
}

static void link_user(struct doorbell_group *g, struct doorbell_user *u)
{
	if (!g->next) {
		u->next = u->prev = u;
		g->next = u;
	} else {
		u->next = g->next;
		u->prev = g->next->prev;
		u->prev->next = u;
		u->next->prev = u;
	}
	g->count++;
}

static void unlink_user(struct doorbell_group *g, struct doorbell_user *u)
{
	u->prev->next = u->next;
	u->next->prev = u->prev;
	g->count--;
	if (g->next == u)
		g->next = g->count ? u->next : NULL;
	g->left = min_u32(g->left, g->count);
}

/* Set lock held. */
static void set_live(struct doorbell_user *u, bool live)
{
	struct doorbell_page *page = u->page;
	struct doorbell_group *g = &page->group[u->kind];

	if (u->live == live)
		return;
	if (!live && u->kind == DOORBELL_SQ && is_watched(page))
		(void)look_at_sqs(page);
	u->live = live;
	if (live) {
		link_user(g, u);
		atomic_fetch_add(&page->announced, u->announced);
	} else {
		unlink_user(g, u);
		atomic_fetch_sub(&page->announced, u->announced);
	}
}

void doorbell_live(struct doorbell_user *u, bool live)
{
	bool fresh;

	if (!u->page)
		return;
	spin_lock(&doorbell_set.lock);
	set_live(u, live);
	fresh = doorbell_page_changed(u->page);
	spin_unlock(&doorbell_set.lock);
	tell_engine(fresh);
}

void doorbell_user_release(struct doorbell_user *u)
{
	struct doorbell_page *page = u->page;

	if (!page)
		return;
	spin_lock(&doorbell_set.lock);
	set_live(u, false);
	doorbell_page_changed(page);
	u->page = NULL;
	doorbell_page_put(page);
	spin_unlock(&doorbell_set.lock);
}

void doorbell_taken_over(struct doorbell_user *u)
{
	bool fresh = false;

	if (!u->page)
		return;
	spin_lock(&doorbell_set.lock);
	if (!u->announced) {
		u->announced = true;
		if (u->live)
			atomic_fetch_add(&u->page->announced, 1);
		else if (u->kind != DOORBELL_SQ)
			set_live(u, true); /* with hooks it was not live before */
		fresh = doorbell_page_changed(u->page);
	}
	spin_unlock(&doorbell_set.lock);
	tell_engine(fresh);
}

/* Runs on the data path, hence without the lock: the next look takes the page off the list. */
void doorbell_first_hook(struct doorbell_user *u)
{
	atomic_store_explicit(&u->hooked, true, memory_order_relaxed);
	if (!u->page)
		return;
	set_state(u->page, DOORBELL_HOOKED);
	if (!doorbell_is_direct(u->page))
		atomic_store_explicit(&u->page->stale, true, memory_order_relaxed);
}

/* ---- looking ---- */

static void group_serve(struct doorbell_group *g)
{
	struct doorbell_user *u = g->next;

	g->next = u->next;
	g->left--;
	u->ring(u);
}

static void serve_some(struct doorbell_group *g, uint32_t most)
{
	for (uint32_t n = min_u32(g->left, most); n; n--)
		group_serve(g);
}

static void page_seen(struct doorbell_page *page)
{
	atomic_store_explicit(&page->fault_ns, 0, memory_order_relaxed);
	if (likely(page_state(page) != DOORBELL_UNKNOWN))
		return;
	page->stores++;
	if (page->stores < STORES_OF_A_DIRECT_USER &&
	    atomic_load_explicit(page->attr.hooks, memory_order_relaxed))
		return;
	set_state(page, DOORBELL_DIRECT);
	doorbell_page_changed(page);
}

/* All CQs of a page share one register, so it does not matter which CQ the value names. */
static bool look_at_cqs(struct doorbell_page *page)
{
	struct doorbell_group *g = &page->group[DOORBELL_CQ];

	if (likely(!page_peek(page, UAR_CQ)))
		return false;
	trace(doorbell, noticed, "look", "CQ-page", (uintptr_t)page->attr.regs);
	(void)page_take(page, UAR_CQ);
	g->left = g->count;
	return true;
}

/*
 * EQs have no record in memory: the value is all that there is.  Where EQs share a page, one may
 * overwrite the value of another before anybody sees it, and the EQs do without (devx/eq.c).
 */
static bool look_at_eqs(struct doorbell_page *page)
{
	struct doorbell_group *g = &page->group[DOORBELL_EQ];
	bool found = false;

	for (unsigned arms = 0; arms < 2; arms++) {
		size_t off = arms ? UAR_EQ_ARM : UAR_EQ;

		if (likely(!page_peek(page, off)))
			continue;
		page->eq_value[arms] = (uint32_t)page_take(page, off);
		trace(doorbell, noticed, "look", "EQ-page", (uintptr_t)page->attr.regs);
		g->left = g->count;
		found = true;
	}
	return found;
}

uint32_t doorbell_eq_value(const struct doorbell_user *u, bool arms)
{
	return u->page->eq_value[arms];
}

void doorbell_eq_take(struct doorbell_user *u, bool arms)
{
	u->page->eq_value[arms] = 0;
}

static bool look_at(struct doorbell_page *page)
{
	bool found = false;

	if (page->group[DOORBELL_SQ].count)
		found = look_at_sqs(page);
	if (page->group[DOORBELL_CQ].count)
		found |= look_at_cqs(page);
	if (unlikely(page->group[DOORBELL_EQ].count))
		found |= look_at_eqs(page);
	if (unlikely(page->attr.look))
		found = page->attr.look(page->attr.user);
	if (unlikely(found))
		page_seen(page);
	for (unsigned kind = 0; kind < DOORBELL_KINDS; kind++) {
		if (page->group[kind].left) {
			serve_some(&page->group[kind], SERVE_AT_ONCE);
			found = true;
		}
	}
	return found;
}

bool doorbell_look_locked(enum doorbell_scope scope)
{
	bool found = false, stale = false;

	for (struct doorbell_page *p = doorbell_set.watched; p; p = p->next_watched) {
		enum doorbell_state state = page_state(p);

		stale |= state == DOORBELL_HOOKED;
		if (state == DOORBELL_DIRECT ||
		    (state == DOORBELL_UNKNOWN && scope == DOORBELL_WATCHED_PAGES))
			found |= look_at(p);
	}
	if (unlikely(stale))
		pages_recount();
	return found;
}

bool doorbell_look(enum doorbell_scope scope)
{
	bool found;

	/* A thread that finds the lock taken may go: the other one is looking. */
	if (!spin_try(&doorbell_set.lock))
		return false;
	found = doorbell_look_locked(scope);
	spin_unlock(&doorbell_set.lock);
	return found;
}

void doorbell_serve_all(struct doorbell_page *page)
{
	for (unsigned kind = 0; kind < DOORBELL_KINDS; kind++)
		page->group[kind].left = page->group[kind].count;
}

bool doorbell_serve_now(struct doorbell_page *page)
{
	bool all = true;

	doorbell_serve_all(page);
	for (unsigned kind = 0; kind < DOORBELL_KINDS; kind++) {
		serve_some(&page->group[kind], SERVE_IN_FAULT);
		all &= !page->group[kind].left;
	}
	return all;
}

/* ---- pages join and leave the set ---- */

int doorbell_page_create(const struct doorbell_page_attr *attr, struct doorbell_page **out)
{
	struct doorbell_page *page = calloc(1, sizeof(*page));
	bool fresh;

	if (!page)
		return -ENOMEM;
	page->attr = *attr;
	page->refs = 1;
	if (attr->look)
		atomic_init(&page->state, DOORBELL_DIRECT);
	spin_lock(&doorbell_set.lock);
	page->next = doorbell_set.pages;
	doorbell_set.pages = page;
	doorbell_mappings_join(page);
	fresh = doorbell_page_changed(page);
	spin_unlock(&doorbell_set.lock);
	if (fresh)
		doorbell_tell_engine();
	*out = page;
	return 0;
}

void doorbell_page_destroy(struct doorbell_page *page)
{
	struct doorbell_page **at = &doorbell_set.pages;

	spin_lock(&doorbell_set.lock);
	while (*at != page)
		at = &(*at)->next;
	*at = page->next;
	page->gone = true;
	doorbell_mappings_leave(page);
	doorbell_page_changed(page);
	/* Rings what was stored since the last look. */
	if (page->attr.look)
		(void)page->attr.look(page->attr.user);
	doorbell_page_put(page);
	spin_unlock(&doorbell_set.lock);
}

/* ---- mappings that nobody told us of ---- */

/*
 * Finds mappings of register pages that nobody told us of.  A program (or its memory hooks: UCX has
 * some) may map by the bare system call, past the preload library; the kernel's list of mappings
 * has them nevertheless.
 */

static bool same_file(const struct vma *a, const struct vma *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

void doorbell_find(const uint8_t *regs, doorbell_found *found)
{
	char *text = vma_list();
	const char *at = text;
	struct vma ours = {0}, v;
	uint64_t page;

	if (!text)
		return;
	while (vma_next(&at, &v))
		if ((uintptr_t)regs >= v.start && (uintptr_t)regs < v.end)
			ours = v;
	page = ours.offset + ((uintptr_t)regs - ours.start);
	at = text;
	while (ours.end && vma_next(&at, &v))
		if (v.perms[3] == 's' && same_file(&v, &ours) && v.start != ours.start &&
		    page >= v.offset && page - v.offset < v.end - v.start)
			found(regs, v.start + (page - v.offset));
	free(text);
}
