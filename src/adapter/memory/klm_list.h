/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translation list of an indirect memory key: it says for each byte of the key which piece of
 * which other key the byte is.  Three forms:
 *
 *	KLM	entries with a length each, one behind the other
 *	KSM	entries of one length, a power of two
 *	strided	a cycle of pieces, repeated: in cycle r each piece lies r of its strides further
 *		on.  The first entry is a header, which has UMR_STRIDED where a KLM has a key.
 *
 * Entries stay as they were written, because a UMR may change a part of them.  A look-up takes time
 * logarithmic in the number of entries and does not depend on how often a cycle repeats.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "prm/wqe.h"

struct klm_list {
	enum mkey_list kind;
	uint8_t log_entry_bytes; /* KSM */
	uint32_t room;		 /* entries */
	uint32_t count;		 /* of them in use, header included */
	uint32_t settled;	 /* entries with a known end (not of a strided list) */
	uint64_t bytes;		 /* bytes that the list describes */
	bool strided;
	uint64_t cycle; /* strided: bytes of one */
	struct umr_klm *entry;
	uint64_t *end; /* KLM and strided: end of each entry, in the list or the cycle */
};

struct klm_piece {
	uint32_t key;
	uint64_t va;
	uint64_t len;
};

/* -ENOMEM */
int klm_list_init(struct klm_list *l, enum mkey_list kind, uint8_t log_entry_bytes,
		  uint32_t room) must_check;
void klm_list_release(struct klm_list *l);

void klm_list_clear(struct klm_list *l);
/* Writes n entries, which fit, at entry at.  The list has no bytes until klm_list_settle. */
void klm_list_put(struct klm_list *l, uint32_t at, const struct umr_klm *entry, uint32_t n);
/* Makes the written entries the list.  NULL, or what is wrong with them; then the list is empty. */
const char *klm_list_settle(struct klm_list *l) must_check;

/* Writes the pieces of [off, off + len), which lies inside the list, and stops when out is full.
 * Returns how many. */
uint32_t klm_list_pieces(const struct klm_list *l, uint64_t off, uint64_t len,
			 struct klm_piece *out, uint32_t max);
