/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic path migration (IBTA volume 1, 17.2.8): a connection moves to its alternate path, which
 * the program loads by IB_QP_ALT_PATH, when the primary path fails.
 *
 *	MIGRATED  the state after RESET and after a migration
 *	REARM     the program has asked for migration, and the peer has not yet
 *	ARMED     so has the peer: BTH.MigReq of its packets is 0
 *	DUE       as ARMED, but the migration is about to happen; programs do not see this state
 *
 * A queue pair migrates when its retries are exhausted, when the program sets MIGRATED, or when the
 * peer has migrated: a packet comes along the alternate path, and its MigReq is 1.  A migration
 * needs all three locks of the queue pair.  The completer and the responder hold one, so they note
 * DUE and kick the queue pair, whose next run begins with qp_continue.  The responder sends no
 * answers meanwhile, because they belong on the alternate path.
 *
 * A queue pair that is not MIGRATED neither sends nor takes requests without packets, because only
 * packets have the bit.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "wire/pkt.h"

/* A value of qp->migration beyond enum ib_mig_state. */
#define MIGRATION_DUE 3u

static inline bool migration_is_due(const struct qp *qp)
{
	return unlikely(atomic_load_explicit(&qp->migration, memory_order_acquire) ==
			MIGRATION_DUE);
}

/* The state as programs see it. */
enum ib_mig_state migration_state(const struct qp *qp);

/* True if the program may set the state; the caller holds all locks. */
bool migration_may_set(const struct qp *qp, uint32_t state) must_check;
/* Sets it.  Returns the attributes that this has changed (enum ib_qp_attr_mask).  The caller holds
 * all locks. */
uint32_t migration_set(struct qp *qp, uint32_t state);
/* Makes the alternate path the primary one in the attributes, if a migration is due: returns the
 * attributes that have changed, otherwise 0.  The caller holds all locks. */
uint32_t migration_take(struct qp *qp);

/* Performs a migration that is due, and then sends the answers that are owed.  The caller holds no
 * locks. */
void qp_continue(struct qp *qp);

/* Called when the retries are exhausted: true if the queue pair migrates instead of failing. */
bool migration_begin(struct qp *qp, const char *why);

enum migration_verdict {
	MIGRATION_NO_MATTER, /* the packet has to be that of the primary path */
	MIGRATION_FOLLOWED,  /* it is from the peer, along the alternate path */
	MIGRATION_REFUSED,   /* the peer has migrated to another path: drop the packet */
};

/* What an incoming packet says of the peer's migration; call it if the queue pair is not MIGRATED.
 * Under resp.lock or comp.lock. */
enum migration_verdict migration_check(struct qp *qp, const struct pkt *pkt);
/* Called for a packet of the peer's that is taken, under the same conditions. */
void migration_heard(struct qp *qp, const struct pkt *pkt);
/* True if the packet has the addresses of the alternate path, whoever sent it. */
bool migration_has_addresses(const struct qp *qp, const struct path *path);
