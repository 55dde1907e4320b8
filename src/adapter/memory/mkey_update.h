/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of indirect memory keys by UMR work requests.
 *
 * The mask says which fields of the key change; the rest of the context is ignored, because the
 * ring may hold old bytes there.  Accesses that begin after a change see all of it.  Only a list
 * that is fetched from memory is written in steps, and describes nothing meanwhile.
 */
#pragma once

#include "adapter/memory/mkey.h"
#include "prm/umr.h"

struct mkey_update {
	uint32_t key; /* names it; only an invalidation looks at its variant */
	uint32_t pdn; /* of the QP that posted it */
	uint32_t qpn;
	uint8_t flags;
	uint64_t mask;
	struct umr_mkey_context context;
	/* Entries [at, at + entries) of the list to write: their bytes here, or in memory. */
	uint64_t at;
	uint32_t entries;
	const struct umr_klm *entry;
	uint32_t list_lkey;
	uint64_t list_va;
	/* NULL: the BSF stays */
	const uint8_t *bsf;
	uint32_t bsf_octowords;
};

/* Does it invalidate the key (local invalidate)? */
static inline bool mkey_update_invalidates(const struct mkey_update *u)
{
	return u->flags & UMR_CHECK_QPN && u->mask & UMR_MASK_FREE &&
	       u->context.free & MKEY_CTX_FREE;
}

/* enum cqe_syndrome, 0: done; otherwise a log line says why.  Under RCU. */
uint8_t mkey_update(struct adapter *a, const struct mkey_update *u) must_check;
