/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reaches memory of a peer's process, named by its keys.  The owner of a key has decided in which
 * way others reach its memory (driver/uverbs/objects/share.c), and the key's block says so.  Only
 * this file of the initiator looks at that and follows it (reach/way.h), or leaves the request to
 * packets.
 */
#pragma once

#include "adapter/bypass/bypass_peer.h"
#include "adapter/qp/send_wqe.h"
#include "usermem/usermem_touch.h"

/* The memory that a request names. */
struct remote_range {
	uint32_t rkey;
	uint64_t va, len;
};

struct remote_move {
	uint32_t right; /* IB_ACCESS_REMOTE_READ or REMOTE_WRITE */
	const struct remote_range *ranges;
	uint32_t n;		 /* up to WAY_REQUESTS */
	const struct run *local; /* our memory: as many bytes, or more */
	uint32_t nlocal;
	struct key_memo *memo; /* the requester's */
	/* results */
	uint32_t done;	  /* so many requests are executed, from the first on */
	enum key_way way; /* for traces; 'why' says why the next one was not executed */
	const char *why;
};

/*
 * Executes requests in their order at a peer in another process that the caller has entered.
 * Packets must carry those that are not executed: a key refuses, memory is not there, or no way is
 * open now.  The first of these may be executed in part.  The caller is a reader.
 */
void remote_move(const struct bypass_peer *r, struct remote_move *m);
/* Executes an atomic at mapped memory of such a peer.  False: it is not executed; true: *before is
 * what the memory held. */
bool remote_atomic(const struct bypass_peer *r, const struct send_wqe *w, struct key_memo *memo,
		   uint64_t *before) must_check;
/* Returns the way of a request that has to move in parts.  It is KEY_PACKETS also if the key does
 * not allow the whole request now, because a responder that refuses it takes none of the parts. */
enum key_way remote_way(const struct bypass_peer *r, uint32_t right,
			const struct remote_range *at) must_check;

/* For traces: names the way of a request that was executed at a peer. */
static inline const char *remote_way_name(const struct bypass_peer *r, enum key_way way)
{
	return r->remote ? key_way_name(way) : "same-process";
}

/*
 * Makes the commonest access to memory of another process: one request of one piece, to memory that
 * is mapped and remembered (struct key_memo).  It does what remote_move does, but lists nothing and
 * is inline, because the rate of small messages depends on it (rdma_burst.c).
 */

#define REMOTE_PAGE 4096u

/* ---- what is remembered of a key ---- */

/* A key that was valid still is, unless its owner has counted a revocation since.  If the owner has
 * made it invalid and counts later, the owner sees our claim; so we need not look at the key. */
static inline bool memo_holds(const struct key_memo *m, const struct bypass_peer *r,
			      const struct access *hold)
{
	return m->remote == r->remote->number && m->revocations == hold->seen &&
	       m->let_go ==
		       atomic_load_explicit(&r->remote->segments.let_go, memory_order_acquire) &&
	       m->pdn == r->pdn;
}

static inline bool memo_covers(const struct key_memo *m, uint32_t right,
			       const struct remote_range *at)
{
	return m->key == at->rkey && (m->access & right) == right &&
	       range_inside(at->va - m->va, at->len, m->length);
}

static inline uint8_t *memo_at(const struct key_memo *m, const struct remote_range *at)
{
	return m->at + (at->va - m->va);
}

/* Is the responder where it was (perhaps closed for a moment), and is this right still allowed?
 * The queue that gives an XRC request its protection domain must be unchanged, too. */
static inline bool responder_stands(const struct bypass_peer *r, uint32_t right)
{
	return likely(!r->srq ||
		      atomic_load_explicit(r->srq, memory_order_acquire) == r->srq_word) &&
	       likely(!((qp_word_load(&r->block->word) ^ r->word) & ~QP_WORD_OPEN) &&
		      (__atomic_load_n(&r->block->view.access, __ATOMIC_RELAXED) & right) == right);
}

/* We bring our memory in before we hold a slot, because a fault of our own program's memory may
 * wait for somebody. */
static inline void bring_in_piece(const struct run *local, bool write)
{
	uintptr_t at = (uintptr_t)local->addr;

	if (unlikely(write || (at ^ (at + local->len - 1)) >= REMOTE_PAGE))
		usermem_bring_in(local, 1, write);
	else
		(void)usermem_look(local->addr); /* the copy fails if it is not there */
}

/* Executes the request; false: nothing counts as done. */
static inline bool remote_move_plain(const struct bypass_peer *r, uint32_t right,
				     const struct key_memo *memo, const struct remote_range *at,
				     const struct run *local)
{
	const struct way_peer *p = &r->remote->reach;
	struct access hold;
	bool done;

	if (unlikely(!memo_covers(memo, right, at)))
		return false;
	bring_in_piece(local, right == IB_ACCESS_REMOTE_READ);
	if (unlikely(!access_claim(p->table, &hold)))
		return false;
	/* The looks at the word and at the count come after the claim: see reach/access.h. */
	done = responder_stands(r, right) && likely(memo_holds(memo, r, &hold)) &&
	       way_mapped_one(&hold, p->alive, right == IB_ACCESS_REMOTE_READ, local->addr,
			      memo_at(memo, at), at->len);
	access_release(&hold);
	return likely(done);
}
