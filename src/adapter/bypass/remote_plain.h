/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the commonest access to memory of another process: one request of one piece, to memory that
 * is mapped and remembered (struct key_memo).  It does what remote_move does, but lists nothing and
 * is inline, because the rate of small messages depends on it (rdma_burst.c).
 */
#pragma once

#include "adapter/bypass/remote_memory.h"
#include "usermem/usermem_touch.h"

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
