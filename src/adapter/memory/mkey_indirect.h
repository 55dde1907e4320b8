/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Indirect memory keys: lists of pieces of other keys, with or without block signatures.
 *
 * UMR work requests change them, as often as once per transfer.  So a change allocates nothing and
 * waits for nobody: list and signature configuration change in place, under a lock of the key that
 * users hold only while they copy them out.  An access that began before a change may end after it.
 *
 * Offsets.  Accesses to a signed key name the wire's stream (sig.h); its list, its start and its
 * length are those of the memory's stream.
 */
#pragma once

#include "adapter/memory/klm_list.h"
#include "adapter/memory/mkey.h"
#include "adapter/sig/sig.h"
#include "prm/wqe.h"

/* A key with signatures as it was at one moment. */
struct mkey_signed {
	uint32_t key;
	uint64_t generation; /* of its configuration; no other on this device has it */
	uint64_t start;	     /* address of the first byte */
	uint64_t length;     /* of the memory's stream */
	struct sig_plan plan;
};

/*
 * Opens a signed key for an access in this direction.  MKEY_NO_KEY also if the key has no
 * signatures.  The caller is a reader.
 */
enum mkey_verdict mkey_signed_open(struct adapter *a, const struct mkey_use *u,
				   enum sig_direction d, struct mkey_signed *out) must_check;
/*
 * Appends the runs of bytes [off, off + len) of the memory's stream, counted from the key's first
 * byte.  MKEY_NO_KEY if the key has changed since it was opened; MKEY_TOO_MANY_RUNS leaves runs
 * unchanged.  The caller is a reader.
 */
enum mkey_verdict mkey_signed_runs(struct adapter *a, const struct mkey_signed *s, uint32_t access,
				   uint64_t off, uint64_t len, struct runs *runs) must_check;
/*
 * Keys in the middle of a chain (a transaction signature without t_init) begin with what the PSV
 * carries.  mkey_signed_take puts that into the plan of s, before a stream begins at this offset
 * of the wire's stream.  mkey_signed_carry stores the register of a side whose data is complete.
 *
 * message identifies the message that moves the data, so that one that is sent again is recognized;
 * 0: it is never sent again.  Both in a reader.
 */
void mkey_signed_take(struct adapter *a, struct mkey_signed *s, uint64_t message, uint64_t offset);
void mkey_signed_carry(struct adapter *a, const struct mkey_signed *s, uint64_t message,
		       enum sig_side side, uint64_t reg);
/*
 * Notes that an access has found this error.  True: report it, because it is the first since the
 * key was armed (by SET_PSV to the side's PSV, or by a UMR with the signature error bit).  The
 * caller is a reader.
 */
bool mkey_signed_raise(struct adapter *a, const struct mkey_signed *s,
		       const struct sig_error *e) must_check;

/*
 * Changes of indirect memory keys by UMR work requests.
 *
 * The mask says which fields of the key change.  The update ignores the rest of the context,
 * because the ring may hold old bytes there.  Accesses that begin after a change see all of it.
 * Only a list that comes from memory is written in steps, and describes nothing meanwhile.
 */

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

/*
 * The inside of an indirect memory key, which mkey_indirect.c uses and changes.
 */

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

/* Where the next access to a signed key continues. */

/*
 * Where the latest access by one role of a queue pair left its signed key.  The next packet, or an
 * access that follows on the last one, continues with the unit that was begun there.  A packet that
 * is sent again, and any other access, begins anew.  All zero: there is nothing to continue.  The
 * role's lock guards it.
 */
struct sig_resume {
	struct mkey_signed key;
	struct sig_stream stream;
	uint64_t next; /* offset in the wire's stream; 0: the stream is unusable */
};
