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

#include "adapter/memory/mkey.h"
#include "adapter/sig/sig.h"

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
