/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of indirect memory keys by UMR work requests.
 *
 * The mask says which fields of the key change.  The update ignores the rest of the context,
 * because the ring may hold old bytes there.  Accesses that begin after a change see all of it.
 * Only a list that comes from memory is written in steps, and describes nothing meanwhile.
 */
#pragma once

#include "adapter/memory/mkey.h"
#include "prm/wqe.h"

struct mkey_update {
	uint32_t key; /* names the key; only an invalidation looks at its variant */
	uint32_t pdn; /* of the QP that posted the update */
	uint32_t qpn;
	uint8_t flags;
	uint64_t mask;
	struct umr_mkey_context context;
	/* The entries [at, at + entries) of the list to write: their bytes here, or in memory. */
	uint64_t at;
	uint32_t entries;
	const struct umr_klm *entry;
	uint32_t list_lkey;
	uint64_t list_va;
	/* NULL: the BSF stays as it is */
	const uint8_t *bsf;
	uint32_t bsf_octowords;
};

/* True if it invalidates the key (local invalidate). */
static inline bool mkey_update_invalidates(const struct mkey_update *u)
{
	return u->flags & UMR_CHECK_QPN && u->mask & UMR_MASK_FREE &&
	       u->context.free & MKEY_CTX_FREE;
}

/* Returns enum cqe_syndrome, 0: done; otherwise a log line says why.  The caller is a reader. */
uint8_t mkey_update(struct adapter *a, const struct mkey_update *u) must_check;
