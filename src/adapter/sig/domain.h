/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signatures of data in memory and on the wire: mlx5dv_wr_set_mkey_sig_block(3) describes them
 * and a BSF encodes them (prm/bsf.h).
 *
 * A domain with a signature is a stream of units: a block of data, then its signature.  A domain
 * without a signature has only data.
 *
 * A transaction signature covers the data of one key, or of several keys in turn: a chain.  In each
 * key the domain is one block, all of the key's data.  The first key begins with the seed, each other
 * with what the PSV carries from the one before, and the signature follows on the data of the last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum sig_type {
	SIG_NONE,
	SIG_T10DIF_CRC,	 /* guard, application tag, reference tag; SBC-3 4.22 */
	SIG_T10DIF_CSUM, /* the same with the Internet checksum as the guard */
	SIG_CRC32,	 /* of FC-PH: not reflected, big-endian */
	SIG_CRC32C,	 /* of iSCSI (RFC 3720): reflected, little-endian */
	SIG_CRC64_XP10,	 /* reflected, little-endian */
	SIG_TYPES
};

/* Numbered as in the error CQE. */
enum sig_side { SIG_WIRE, SIG_MEMORY, SIG_SIDES };

/* Tags that switch off the check of their block. */
enum sig_escape {
	SIG_ESCAPE_NONE,
	SIG_ESCAPE_APP,	    /* application tag ffff */
	SIG_ESCAPE_APP_REF, /* application tag ffff and reference tag ffffffff */
};

struct sig_domain {
	enum sig_type type;
	uint32_t block; /* bytes of data; 0 without a signature */
	bool seed_ones; /* each block's guard begins with ones; false: with zeros */
	bool transaction;
	bool first; /* transaction only: begins with the seed */
	bool last;  /* transaction only: the signature follows */
	/* T10-DIF only */
	bool ref_increment; /* reference tag of block i is ref_tag + i */
	enum sig_escape escape;
	uint16_t app_tag;
	uint16_t app_mask; /* bits of the application tag that a check compares */
	uint32_t ref_tag;  /* of the block at offset 0 */
	uint32_t psv;
};

/* In the masks, bit 7 stands for the first byte of the signature in the stream, bit 6 for the
 * second and so on; bits past the signature's end mean nothing. */
struct sig_config {
	struct sig_domain side[SIG_SIDES];
	bool same_structure; /* type and block size agree, so that the device can copy bytes */
	uint8_t check_mask;  /* bytes to check, in the domain that data comes from */
	uint8_t copy_mask;   /* bytes to copy instead of making them; 0 without same_structure */
	uint32_t data_bytes; /* most data bytes, not counting signatures */
};

#define SIG_BLOCK_MAX (1u << 30)

/* Why a configuration is refused. */
enum sig_refusal {
	SIG_ACCEPTED,
	SIG_REFUSED_TRUNCATED,	 /* it is shorter than it says */
	SIG_REFUSED_CRYPTO,	 /* encryption */
	SIG_REFUSED_TRANSACTION, /* a transaction signature of an unknown format or none */
	SIG_REFUSED_PROLOGUE,	 /* bytes that a transaction signature does not cover */
	SIG_REFUSED_NO_DATA,	 /* a transaction of no bytes */
	SIG_REFUSED_MIXED,	 /* a transaction signature and block signatures */
	SIG_REFUSED_FORMAT,	 /* unknown CRC */
	SIG_REFUSED_GUARD,	 /* unknown kind of T10-DIF guard */
	SIG_REFUSED_AMBIGUOUS,	 /* both a CRC and T10-DIF in one domain */
	SIG_REFUSED_ONCE,	 /* a format that is not repeated for each block */
	SIG_REFUSED_INVERTED,	 /* inverted signatures */
	SIG_REFUSED_BLOCK_SIZE,	 /* unknown or missing, or given without a signature */
	SIG_REFUSED_BLOCK_ALIGN, /* T10-DIF blocks are multiples of 8 bytes */
	SIG_REFUSED_STRUCTURE,	 /* it says that the structures are the same, but they are not */
	SIG_REFUSALS
};

const char *sig_refusal_name(enum sig_refusal r);
const char *sig_type_name(enum sig_type t);

/* Decodes the BSF of a UMR.  'given' has 'bytes' bytes and must be a private copy. */
enum sig_refusal sig_config_decode(const uint8_t *given, size_t bytes,
				   struct sig_config *out) must_check;
/* Says whether the configuration is valid.  Decoding has checked it already. */
enum sig_refusal sig_config_check(const struct sig_config *c) must_check;

/* Bytes of a signature. */
uint32_t sig_bytes(enum sig_type t);
/* The transient signature that SET_PSV carries for such a domain. */
uint64_t sig_transient(const struct sig_domain *d);
