/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of an indirect memory key, which mkey_indirect.c uses and mkey_update.c changes.
 */
#pragma once

#include "adapter/memory/klm_list.h"
#include "adapter/memory/mkey_indirect.h"

/*
 * What a key of a chain takes from the PSV of one side and carries to it.  A message that is sent
 * again takes what it took before, and carries nothing a second time: other keys of the chain have
 * gone on from there.
 */
struct chain_link {
	uint64_t start; /* the register that the data begins with */
	bool taken;
	uint64_t taken_by, carried_by; /* messages, see mkey_signed_take */
};

struct indirect {
	struct mkey_meaning meaning; /* published */
	bool umr;
	uint32_t bsf_octowords; /* room for the BSF */

	struct spin lock;    /* guards all members below */
	uint64_t generation; /* the key's number 63:32, the number of its changes 31:0 */
	uint32_t key;
	uint32_t qpn;
	uint32_t access; /* remote rights and local write */
	bool local_read;
	bool free;
	bool remote_invalidate;
	uint64_t start;
	uint64_t length;
	struct klm_list list;

	bool signature;		 /* mkc.bsf_en */
	bool has_bsf;		 /* somebody has written a BSF */
	struct sig_plan plan[2]; /* by enum sig_direction */
	uint32_t psv[SIG_SIDES];
	struct chain_link link[SIG_SIDES];
	bool reported;	   /* an error was reported, and nobody has armed the key since */
	uint32_t psv_arms; /* how often its PSVs had been set by then */
};

extern const struct mkey_ops indirect_ops;

/* The indirect key; NULL if the key's index names none.  The caller is a reader. */
static inline struct indirect *indirect_find(struct adapter *a, uint32_t key)
{
	struct mkey_meaning *m = number_find(&a->mkeys, key >> 8);

	return m && m->ops == &indirect_ops ? container_of(m, struct indirect, meaning) : NULL;
}

/* True if the data differs from what is in memory.  The caller holds the lock. */
static inline bool indirect_signed(const struct indirect *k)
{
	return k->signature && k->has_bsf;
}
