/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translation list of an indirect memory key: which piece of which other key each byte of it
 * is.  Three forms:
 *
 *	KLM	entries of a length each, one behind the other
 *	KSM	entries of one length, a power of two
 *	strided	a cycle of pieces, repeated: in cycle r each lies r of its strides further on.  Its
 *		first entry is a header, which has UMR_STRIDED where a KLM has a key.
 *
 * Entries are kept as they were written, for a UMR may change a part of them.  A look-up takes
 * time logarithmic in the number of entries and does not depend on how often a cycle is repeated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "prm/umr.h"

struct klm_list {
	enum mkey_list kind;
	uint8_t log_entry_bytes; /* KSM */
	uint32_t room;		 /* entries */
	uint32_t count;		 /* of them in use, header included */
	uint32_t settled;	 /* of them with their end known (not of a strided list) */
	uint64_t bytes;		 /* that the list describes */
	bool strided;
	uint64_t cycle; /* strided: bytes of one */
	struct umr_klm *entry;
	uint64_t *end; /* KLM and strided: of the bytes of each entry, in the list or the cycle */
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
/* Puts n entries from entry at on, which fit.  The list is of no bytes until klm_list_settle. */
void klm_list_put(struct klm_list *l, uint32_t at, const struct umr_klm *entry, uint32_t n);
/* Reads what was put.  NULL, or what is wrong; the list is empty then. */
const char *klm_list_settle(struct klm_list *l) must_check;

/* The pieces of [off, off + len), which is inside of the list; stops when out is full.  Returns how
 * many. */
uint32_t klm_list_pieces(const struct klm_list *l, uint64_t off, uint64_t len,
			 struct klm_piece *out, uint32_t max);
