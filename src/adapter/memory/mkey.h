/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: they say who may touch which memory.  A key is an index (bits 31:8) and a variant
 * (7:0) that changes each time the index is used again, so the device refuses a stale key.
 *
 * The meaning of a key is immutable once published.  A change publishes a new meaning and frees the
 * old one when no reader holds it.  Users are readers from the look-up to the end of the copy.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "adapter/core/device.h"
#include "base/explain.h"

/* mkc.qpn: the key belongs to no particular queue pair. */
#define MKEY_ANY_QPN 0xffffffu

struct mkey_meaning;
struct runs;

/*
 * Where a responder is while it holds its lock.  Some keys end on the data path, which cannot wait
 * for readers.  A thread that ends one waits instead for the responders that are counted
 * there.
 */
struct mkey_stay {
	_Atomic(uint32_t) *in; /* counts the responders that are there; NULL: it is nowhere */
};

/* Ends the stay: the copy is complete, or will never begin. */
static inline void mkey_stay_end(struct mkey_stay *s)
{
	if (likely(!s->in))
		return;
	atomic_fetch_sub_explicit(s->in, 1, memory_order_release);
	s->in = NULL;
}

/* Who uses a key, and for what. */
struct mkey_use {
	uint32_t key;
	uint32_t pdn;
	uint32_t qpn; /* MKEY_ANY_QPN: the user cannot say */
	/* The stay of the QP to which a peer has sent a request with this key, until the copy is
	 * complete.  NULL: no peer named the key. */
	struct mkey_stay *remote;
	uint32_t access;
	bool listed; /* an entry of another key's list names the key */
};

enum mkey_verdict {
	MKEY_OK,
	MKEY_NO_KEY, /* no such key, or a stale variant */
	MKEY_WRONG_PD,
	MKEY_NO_RIGHT,
	MKEY_OUT_OF_RANGE,
	MKEY_TOO_MANY_RUNS, /* the runs present describe the beginning */
	MKEY_GONE,	    /* its memory is no longer mapped */
	MKEY_BOUND,	    /* it belongs to a QP, and the user did not say which QP it is */
	MKEY_SIGNED,	    /* memory and message differ, see mkey_indirect.h */
};

/* The operations of a kind of key.  All run in a reader. */
struct mkey_ops {
	/* As mkey_resolve, for a key with the index of m. */
	enum mkey_verdict (*resolve)(struct adapter *a, struct mkey_meaning *m,
				     const struct mkey_use *u, uint64_t va, uint64_t len,
				     struct runs *runs);
	/* As mkey_invalidate. */
	enum mkey_verdict (*invalidate)(struct mkey_meaning *m, const struct mkey_use *u);
	/* Frees the meaning and the object that contains it. */
	void (*release)(struct mkey_meaning *m);
};

/* No 32-bit key equals this one. */
#define MKEY_NO_REGION UINT64_MAX

/* A region's meaning stands here completely, so a look-up of its key needs nothing else. */
struct mkey_meaning {
	uint64_t region_key; /* the key of a region; MKEY_NO_REGION for other kinds */
	uint32_t pdn;
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	uint8_t *addr;
	struct mkey *owner;
	const struct mkey_ops *ops;
};

/* The name for traces. */
static inline const char *mkey_verdict_name(enum mkey_verdict v)
{
	static const char *const names[] = {
		[MKEY_OK] = "OK",
		[MKEY_NO_KEY] = "NO_KEY",
		[MKEY_WRONG_PD] = "WRONG_PD",
		[MKEY_NO_RIGHT] = "NO_RIGHT",
		[MKEY_OUT_OF_RANGE] = "OUT_OF_RANGE",
		[MKEY_TOO_MANY_RUNS] = "TOO_MANY_RUNS",
		[MKEY_GONE] = "GONE",
		[MKEY_BOUND] = "BOUND",
		[MKEY_SIGNED] = "SIGNED",
	};
	const char *name = (unsigned)v < array_size(names) ? names[v] : NULL;

	return name ? name : "unknown";
}

/* A list of runs that is being built.  runs_begin starts it: clearing the whole list would cost
 * more than a small copy. */
struct runs {
	uint32_t n;
	struct run run[RUNS_MAX];
	uint32_t key[RUNS_MAX]; /* key of the region that each run belongs to; 0: none */
};

static inline void runs_begin(struct runs *runs)
{
	runs->n = 0;
}

/* Appends a run; the list must have room. */
static inline void runs_add(struct runs *runs, uint32_t key, void *addr, uint64_t len)
{
	runs->run[runs->n] = (struct run){addr, len};
	runs->key[runs->n++] = key;
}

/* What the key means, if it is a region's key and allows the access in the domain; otherwise NULL.
 * The caller is a reader. */
static inline const struct mkey_meaning *mkey_region(struct adapter *a, uint32_t key, uint32_t pdn,
						     uint32_t access)
{
	const struct mkey_meaning *m = number_find(&a->mkeys, key >> 8);

	if (unlikely(!m || m->region_key != key || m->pdn != pdn || (m->access & access) != access))
		return NULL;
	return m;
}

/* The address of [va, va + len) in the region, or NULL. */
static inline uint8_t *mkey_region_place(const struct mkey_meaning *m, uint64_t va, uint64_t len)
{
	return likely(range_inside(va - m->iova, len, m->length)) ? m->addr + (va - m->iova) : NULL;
}

/* Does both; NULL: the key is of another kind, or refuses. */
static inline uint8_t *mkey_region_at(struct adapter *a, uint32_t key, uint32_t pdn,
				      uint32_t access, uint64_t va, uint64_t len)
{
	const struct mkey_meaning *m = mkey_region(a, key, pdn, access);

	return m ? mkey_region_place(m, va, len) : NULL;
}

/*
 * Appends the runs of [va, va + len) under u->key, if the key allows this use.  A length of zero
 * appends nothing, but the key is checked all the same.  The caller is a reader.
 */
enum mkey_verdict mkey_resolve(struct adapter *a, const struct mkey_use *u, uint64_t va,
			       uint64_t len, struct runs *runs) must_check;
/* The same for the null key; MKEY_NO_KEY if u names another key. */
enum mkey_verdict null_mkey_resolve(struct null_mkey *n, const struct mkey_use *u, uint64_t len,
				    struct runs *runs) must_check;

/* Traces and explains the verdict on a piece of a work request's list, if it is a refusal; returns
 * the verdict. */
enum mkey_verdict mkey_piece_refused(struct adapter *a, enum mkey_verdict v,
				     const struct mkey_use *u, uint64_t va, uint64_t len)
	__attribute__((cold));

/*
 * Executes Local Invalidate or Send with Invalidate for QP u->qpn of domain u->pdn: the key refuses
 * all accesses that begin from now on.  The caller is a reader.
 */
enum mkey_verdict mkey_invalidate(struct adapter *a, const struct mkey_use *u) must_check;
/* Is this the key of a region?  The caller is a reader. */
bool mkey_is_region(struct adapter *a, uint32_t key) must_check;

/* Makes a key of this variant with a meaning of another kind than region, and publishes it. */
int mkey_adopt(struct adapter *a, struct mkey_meaning *m, uint8_t variant, uint32_t *key,
	       struct mkey **out) must_check;

/*
 * The null key: an lkey of every protection domain that covers all addresses.  Writes through it
 * are dropped, and reads give zeros (ibv_alloc_null_mr(3)).
 *
 * It is not in the key table, so ordinary look-ups need not test for it: they come here when they
 * have found no key.
 */

struct null_mkey {
	pthread_mutex_t lock;	  /* held to make the key or its zeros */
	_Atomic(uint32_t) key;	  /* 0: nobody has asked for the key */
	_Atomic(uint8_t *) zeros; /* NULL: nobody has read through it */
};

void null_mkey_init(struct null_mkey *n);
void null_mkey_release(struct null_mkey *n);

/* Says in words why a key refuses (base/explain.h). */

/* What a refused access was. */
struct mkey_refusal {
	struct mkey_use use; /* use.remote is not NULL: the use of a peer */
	uint64_t va;
	uint64_t len;
	enum mkey_verdict verdict;
};

/* Notes the reason, for the code that says what follows from it.  The caller is a reader. */
void mkey_explain(struct adapter *a, const struct mkey_refusal *r) __attribute__((cold));
/* The names of rights with '|' between: "IBV_ACCESS_LOCAL_WRITE|IBV_ACCESS_REMOTE_READ". */
const char *access_text(uint32_t access, char *text, size_t size);
