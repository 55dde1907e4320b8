/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one word that a responder shares with its peer in another process:
 *
 *     epoch:15 | open:1 | MSN:24 | expected PSN:24
 *
 * While it is open, the peer may execute requests by itself, and the word alone says how far the
 * responder has come.  The peer loads the word, accesses memory, and advances the word with one
 * exchange, which fails if anything but a look of its owner has happened meanwhile.  So nobody ever
 * waits for a peer.
 *
 * The owner closes the word to go on by itself (a packet), and opens it again; for a plain SEND it
 * advances the open word like a peer.  An access under way survives that if the sequence number has
 * not moved.  When such an access may no longer count, the owner revokes the word, which changes
 * the epoch.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/spin.h"

#define QP_WORD_NUMBER	   0xffffffu
#define QP_WORD_MSN_SHIFT  24u
#define QP_WORD_OPEN	   (1ull << 48)
#define QP_WORD_EPOCH_ONE  (1ull << 49)
#define QP_WORD_EPOCH_MASK (~0ull << 49)
/* How often a peer looks again at a word that is closed for a moment. */
#define QP_WORD_PATIENCE 1024u

static inline uint32_t qp_word_epsn(uint64_t word)
{
	return (uint32_t)word & QP_WORD_NUMBER;
}

static inline uint32_t qp_word_msn(uint64_t word)
{
	return (uint32_t)(word >> QP_WORD_MSN_SHIFT) & QP_WORD_NUMBER;
}

/* The epoch, for traces. */
static inline uint32_t qp_word_epoch(uint64_t word)
{
	return (uint32_t)(word / QP_WORD_EPOCH_ONE);
}

static inline bool qp_word_is_open(uint64_t word)
{
	return word & QP_WORD_OPEN;
}

static inline uint64_t qp_word_load(const _Atomic(uint64_t) *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

/* The word with these numbers. */
static inline uint64_t qp_word_with(uint64_t word, uint32_t epsn, uint32_t msn)
{
	return (word & (QP_WORD_EPOCH_MASK | QP_WORD_OPEN)) |
	       (uint64_t)(msn & QP_WORD_NUMBER) << QP_WORD_MSN_SHIFT | (epsn & QP_WORD_NUMBER);
}

/* ---- the owner, which holds a lock of its own around all but qp_word_revoke ---- */

/* Takes the numbers back: from here on no peer advances them. */
static inline uint64_t qp_word_close(_Atomic(uint64_t) *w)
{
	return atomic_fetch_and_explicit(w, ~QP_WORD_OPEN, memory_order_acq_rel) & ~QP_WORD_OPEN;
}

/*
 * Opens the word with these numbers if it is as it was when the owner loaded it.  In between the
 * owner finds out whether it may; a revocation after that makes this fail.
 */
static inline bool qp_word_open(_Atomic(uint64_t) *w, uint64_t loaded, uint32_t epsn, uint32_t msn)
{
	uint64_t next = qp_word_with(loaded, epsn, msn) | QP_WORD_OPEN;

	return atomic_compare_exchange_strong_explicit(w, &loaded, next, memory_order_acq_rel,
						       memory_order_relaxed);
}

/* Closes the word for good: what a peer has begun does not count any more.  Any thread may call it,
 * without locks. */
static inline void qp_word_revoke(_Atomic(uint64_t) *w)
{
	uint64_t old = atomic_load_explicit(w, memory_order_relaxed);

	while (!atomic_compare_exchange_weak(w, &old, (old & ~QP_WORD_OPEN) + QP_WORD_EPOCH_ONE))
		;
}

/* ---- the peer ---- */

/*
 * Counts messages that were executed since the word was loaded and found open.  False: they do not
 * count, because the responder has moved on, or its word was closed for so long that a packet has
 * to ask it.
 */
static inline must_check bool qp_word_commit(_Atomic(uint64_t) *w, uint64_t loaded,
					     uint32_t packets, uint32_t messages)
{
	uint64_t next = qp_word_with(loaded, qp_word_epsn(loaded) + packets,
				     qp_word_msn(loaded) + messages);

	for (unsigned round = 0; round < QP_WORD_PATIENCE; round++) {
		uint64_t now = loaded;

		if (likely(atomic_compare_exchange_strong_explicit(
			    w, &now, next, memory_order_acq_rel, memory_order_relaxed)))
			return true;
		if ((now ^ loaded) & ~QP_WORD_OPEN)
			return false;
		cpu_relax();
	}
	return false;
}
