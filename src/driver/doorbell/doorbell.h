/* SPDX-License-Identifier: BSD-2-Clause */
/* clang-format off */
/*
 * Doorbells that nobody announces.
 *
 * Most doorbells come by the hooks (hooks/hooks.h), in the thread that rang them.  But a program
 * may also handle rings and registers itself (mlx5dv_init_obj, DEVX) or ring where no hook is
 * called; then only a store to a page of registers can be seen.  This is the set of those pages, of
 * the queues that use them, and the look at them.
 *
 * States of a page:
 *   UNKNOWN  allocated                       -> HOOKED  by the first doorbell that a hook announces
 *                                            -> DIRECT  by stores that no hook announces
 *   HOOKED   never looked at                 -> DIRECT  by a queue that the program takes over
 *   DIRECT   stores may come from any thread -> HOOKED  by a hook, unless a queue was taken over
 * A page is watched if it is not HOOKED and a queue that uses it can have work.
 *
 * While the engine is awake it looks at the registers of watched pages, and threads that poll by
 * the hooks look at those of DIRECT pages.  A value names a queue pair and says how far its
 * requests are posted, but queue pairs that share the register overwrite each other's values.  So
 * the named queue pair is served at once, the value is taken out (the register is set to 0), and
 * then all queues of the page are served, a few at a time: their doorbell records tell what
 * overwritten values said.  The register of a queue pair is not known, its page is (struct
 * mlx5_ib_create_qp).
 *
 * Values that were stored while nobody looked are old: an index may have come round since.  So they
 * are cleared when a page begins to be watched.  What is stored to a queue that is reset is taken
 * out when the queue ceases to be live, because its index begins again.
 *
 * Before the engine sleeps, watched pages are protected against stores by userfaultfd, see
 * doorbell_arm.
 *
 * There is one set per process, as there is one address space.
 */
/* clang-format on */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* ---- pages ---- */

struct doorbell_page;

struct doorbell_page_attr {
	uint8_t *regs; /* our view of the page: its name in this set */
	/* Does the program's context have hooks?  Looked at when something happens. */
	const _Atomic(bool) *hooks;
	/* The register named this queue pair, whose requests before block pi are posted; both come
	 * from the program.  One thread at a time calls this. */
	void (*ring)(void *user, uint32_t qpn, uint16_t pi);
	void *user;
	/*
	 * Not NULL: the page is of another kind, and this function takes values out of its
	 * registers; true: there were some.  Such a page is always watched, the program may store
	 * to it without a hook, and no queue uses it.  doorbell_page_destroy calls the function a
	 * last time.
	 */
	bool (*look)(void *user);
};

/* -ENOMEM */
int doorbell_page_create(const struct doorbell_page_attr *attr,
			 struct doorbell_page **out) must_check;
/* On return no thread looks at the registers any more, and queues that used the page have none. */
void doorbell_page_destroy(struct doorbell_page *page);

/* ---- queues ---- */

enum doorbell_kind { DOORBELL_SQ, DOORBELL_CQ, DOORBELL_EQ, DOORBELL_KINDS };

/* Part of a QP, CQ or EQ.  All zero: it has no page, and every function below does nothing. */
struct doorbell_user {
	struct doorbell_page *page;
	/* Looks for work; there may be none. */
	void (*ring)(struct doorbell_user *u);
	struct doorbell_user *next, *prev; /* circular list of the page's live users */
	enum doorbell_kind kind;
	bool live;
	bool announced;
	_Atomic(bool) hooked;
};

/* Called before the queue is published.  No effect if regs is not a page of the set. */
void doorbell_user_init(struct doorbell_user *u, enum doorbell_kind kind, const uint8_t *regs,
			void (*ring)(struct doorbell_user *u));
/* On return nobody calls ring.  Called before the queue goes, after the readers of the object have left. */
void doorbell_user_release(struct doorbell_user *u);
/* Says whether the queue can have work that only a doorbell tells of. */
void doorbell_live(struct doorbell_user *u, bool live);
/* The program has asked for the queue's inside: from now on it may store at any time. */
void doorbell_taken_over(struct doorbell_user *u);
void doorbell_first_hook(struct doorbell_user *u);

/*
 * For the ring function of an EQ: the last value that the program stored to a register of EQs and
 * that no EQ has taken yet; 0: there is none.  An EQ takes the value that names it.
 */
uint32_t doorbell_eq_value(const struct doorbell_user *u, bool arms);
void doorbell_eq_take(struct doorbell_user *u, bool arms);

/* A hook announced a doorbell. */
static inline void doorbell_hooked(struct doorbell_user *u)
{
	if (unlikely(!atomic_load_explicit(&u->hooked, memory_order_relaxed)))
		doorbell_first_hook(u);
}

/* ---- looking ---- */

/* How many pages there are to look at. */
struct doorbell_load {
	_Atomic(uint32_t) watched;
	_Atomic(uint32_t) direct;
};

extern struct doorbell_load doorbell_load;

static inline bool doorbell_any_watched(void)
{
	return atomic_load_explicit(&doorbell_load.watched, memory_order_relaxed) != 0;
}

static inline bool doorbell_any_direct(void)
{
	return atomic_load_explicit(&doorbell_load.direct, memory_order_relaxed) != 0;
}

enum doorbell_scope { DOORBELL_DIRECT_PAGES, DOORBELL_WATCHED_PAGES };

/* Takes values out of the registers and serves the queues.  True if there were any. */
bool doorbell_look(enum doorbell_scope scope);

/* ---- the engine's sleep ---- */

enum doorbell_sleep {
	DOORBELL_STAY,	/* there was a doorbell, or one comes in a moment */
	DOORBELL_POLL,	/* sleep for DOORBELL_POLL_NS at most: no store would wake the engine */
	DOORBELL_SLEEP, /* a store to a watched page wakes the engine */
};

#define DOORBELL_POLL_NS 1000000u

struct doorbell_engine {
	/* Wakes the engine; cheap when the engine is awake.  Any thread calls it. */
	void (*kick)(void *user);
	/* A thread that has served queues in the handler of its fault calls this without a lock, and
	 * drives the device.  False: the engine has to be woken.  May be NULL. */
	bool (*drive)(void *user);
	/* The engine has no processor of its own, so pages stay protected while it is awake: each store
	 * faults, and its thread serves the queues. */
	bool stays_armed;
	void *user;
};

/* The engine exists from now on.  The record must stay valid until doorbell_stop has returned. */
void doorbell_start(const struct doorbell_engine *engine);
/* On return every thread has left the functions of the engine. */
void doorbell_await_none(void);
/* On return no thread looks or arms any more, and nobody calls functions of the engine. */
void doorbell_stop(void);
/*
 * Protects the watched pages and looks at them once more.  The engine calls this after it has made
 * known that it is about to sleep.
 */
enum doorbell_sleep doorbell_arm(void);
/*
 * Handles a SIGBUS at that address: true if it was a store to a protected page, which then succeeds
 * when the thread repeats it, or which the thread has already behind it.  ucontext: third argument
 * of the handler.  may_serve: the stack is large enough to run the device.
 */
bool doorbell_fault(uintptr_t addr, void *ucontext, bool may_serve);
/* Tells whether it can be such a store.  The caller then holds signals back in doorbell_fault. */
bool doorbell_may_be_at(uintptr_t addr);
/* The engine is awake: stores to DIRECT pages need not fault. */
void doorbell_wake(void);
/*
 * From now on no store faults, because a thread of the program cannot handle that.  The engine looks
 * at the registers now and then instead of sleeping (DOORBELL_POLL).
 */
void doorbell_never_arm(void);

/* ---- where the program has the pages ---- */

/* The program has mapped the page of these registers, shared, so that we see what it stores. */
void doorbell_mapped(const uint8_t *regs, uintptr_t addr);
/* Tells whether we know of a mapping of it in the program. */
bool doorbell_page_mapped(const struct doorbell_page *page);
/* The caller is about to free these addresses.  True: they held mappings of registers. */
bool doorbell_unmapping(uintptr_t addr, size_t len);
/* The program has moved addresses by mremap. */
void doorbell_moved(uintptr_t from, size_t len, uintptr_t to);
/* The registers [regs, regs + len) go for good. */
void doorbell_forget(const uint8_t *regs, size_t len);

/* The child of a fork calls this, because the pages are the parent's. */
void doorbell_fork_child(void);
