/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block signatures: integrity fields between data blocks, checked, made, copied, stripped and
 * changed while data moves between memory and the wire (mlx5dv_wr_set_mkey_sig_block(3)).
 *
 *	BSF of a UMR	 sig_config_decode()	-> struct sig_config, or a reason for the refusal
 *	once per key	 sig_plan_make()	-> struct sig_plan, for each direction
 *	access		 sig_place()		what of the key's memory it touches
 *			 sig_stream_begin()	at the offset of the access
 *			 sig_stream_lead(), sig_stream_prime()	if that is inside of a unit
 *	each packet	 sig_stream_feed()	runs of memory on one side, the payload on the other
 *	end		 sig_stream_finish()	-> struct sig_error
 *	first error	 sig_psv_raise(), sig_error_report()
 *
 * An access to the key names offset and length of the wire's stream.  To gather, feed the memory
 * runs of [sig_place(off), sig_place(off + len)) and let each packet's payload be the destination;
 * after the last the memory cursor is at its end too.  To scatter it is the other way about.  A
 * packet that is sent again starts from a copy of the stream, or begins anew at its offset.
 *
 * A plain library: no globals, no allocation, no locks.  A stream belongs to one thread at a time;
 * plans are read only, and a PSV is safe to share.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/run.h"

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

/*
 * Guards: the part of a signature that the device computes from the data.
 *
 * A guard runs in a 64-bit register: start, any number of updates cut at any byte, seal.  The
 * sealed guard is a signature word: the bytes of the signature in stream order as a big-endian
 * number; a 4-byte signature is in the upper half.  So one mask of eight bytes and one comparison
 * serve all types, and the tags of T10-DIF are or'ed into a word whose guard is at the top.
 */

struct sig_guard {
	uint32_t bytes;	   /* of the whole signature */
	uint64_t bits;	   /* the bits of the word that the guard takes */
	uint64_t start[2]; /* register for seed zero, seed ones */
	uint64_t (*update)(uint64_t reg, const uint8_t *data, size_t n);
	/* The same, and copies the data. */
	uint64_t (*copy)(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n);
	uint64_t (*seal)(uint64_t reg);
};

/* The best guard that this processor can execute; NULL for SIG_NONE. */
const struct sig_guard *sig_guard(enum sig_type t);
/* All guards that this processor can execute, with the best one as number 0; NULL after the last.
 * For tests. */
const struct sig_guard *sig_guard_variant(enum sig_type t, unsigned which);

/* The slice is large enough to hide a call, and small enough that source and destination stay in
 * the first-level cache between two passes. */
#define SIG_SLICE 8192u

/*
 * Signature errors.  They are data: the transfer goes on, and the device keeps the error for the
 * program to ask for (mlx5dv_mkey_check(3)).
 */

/* The parts of a unit, in the order of the checks; the first one that differs is the error. */
enum sig_error_kind { SIG_NO_ERROR, SIG_BAD_GUARD, SIG_BAD_APP_TAG, SIG_BAD_REF_TAG };

struct sig_error {
	enum sig_error_kind kind;
	enum sig_side side; /* the domain that the data came from */
	enum sig_type type;
	bool transaction;
	uint64_t block; /* counted from offset 0 of the key */
	uint64_t unit;	/* bytes of a block and its signature */
	/* The whole signature that stood there, as a word like those of guards. */
	uint64_t found;
	uint64_t computed; /* the signature that it should have been; unchecked parts as found */
};

/*
 * Two readings of "actual", "expected" and "offset".  In the manual page "actual" is the calculated
 * value, "expected" is the field's value, and the offset is a block boundary: the start of the
 * failing unit.  Devices are seen to swap the two values and to give the last byte of the unit.
 */
enum sig_report_style { SIG_REPORT_MANUAL, SIG_REPORT_HARDWARE };

/* The values as the error CQE carries them: T10-DIF guard 63:48, application tag 47:32, reference
 * tag 31:0; CRC32 and CRC32C 63:32; all of CRC64.  CRCs are numbers here, whatever their byte order
 * in the stream is. */
struct sig_report {
	uint64_t actual;
	uint64_t expected;
	uint64_t offset;
};

struct sig_report sig_error_report(const struct sig_error *e, enum sig_report_style style);
/* The part of a report's value that the error concerns. */
uint64_t sig_report_part(const struct sig_error *e, uint64_t value);
const char *sig_error_name(enum sig_error_kind k);

/*
 * A protected signature value object: the value that SET_PSV wrote, and whether an error was
 * reported since.  Block signatures take their seed and tags from the BSF, so the object only keeps
 * the value.
 *
 * All QPs that use the key share the state: sig_psv_raise moves ARMED to REPORTED (one of the
 * threads that race succeeds), sig_psv_arm moves it back.
 */
enum sig_psv_state { SIG_PSV_ARMED, SIG_PSV_REPORTED };

struct sig_psv {
	_Atomic uint32_t state;
	_Atomic uint64_t transient;
};

void sig_psv_arm(struct sig_psv *p, uint64_t transient);
/* True: this is the first error, so report it.  False: one was reported, and nobody has armed it
 * since. */
bool sig_psv_raise(struct sig_psv *p) must_check;

/*
 * A plan: a configuration prepared for one direction, with all decisions that need no data.  A key
 * makes two plans when it is configured; they refer to nothing that somebody could free.
 */

enum sig_direction {
	SIG_GATHER,  /* memory to wire: sends, writes, responses to reads */
	SIG_SCATTER, /* wire to memory: receives, inbound writes, responses to own reads */
};

/* The units of one side's stream.  Without a signature it is a single block that never ends. */
struct sig_frame {
	enum sig_side side;
	enum sig_type type;
	const struct sig_guard *guard; /* NULL without a signature */
	uint32_t bytes;		       /* of a signature */
	uint64_t block;
	uint64_t unit;
	/* The guard's register at the beginning of a block.  A transaction signature that is not the
	 * first one begins with what its PSV carries: the caller of sig_stream_begin puts it here. */
	uint64_t start;
	bool transaction; /* there is no unit behind the first */
	bool first;
	uint64_t app; /* tags, at their place in the word */
	uint32_t ref;
	uint32_t ref_step;
};

struct sig_plan {
	enum sig_direction direction;
	struct sig_frame in;
	struct sig_frame out;
	uint64_t check;	  /* bits of the word that are compared */
	uint64_t copy;	  /* bits of the word that are taken over */
	uint64_t escape;  /* if all of these bits are set, nothing is compared; 0: no escape */
	bool lockstep;	  /* same structure: output follows input inside signatures too */
	bool coincide;	  /* blocks begin together on both sides, or one side has none */
	bool transaction; /* of either side */
	/* The guards that run over the data: the first one copies it, and the second one reads the
	 * copy.  Register 0 is the input's; register 1 is the output's, unless the two guards are
	 * the same. */
	const struct sig_guard *first;
	const struct sig_guard *second;
	uint8_t first_reg;
	uint8_t out_reg;
};

/* Makes a plan from c, which sig_config_decode or sig_config_check has accepted. */
void sig_plan_make(struct sig_plan *p, const struct sig_config *c, enum sig_direction d);

/*
 * The offset in the memory's stream of the byte at this offset of the wire's stream; UINT64_MAX if
 * there is none.  Accesses name offset and length in the wire's stream, and a key's length is that
 * of the memory's stream.  So an access touches memory [place(off), place(off + len)), and
 * consecutive accesses on the wire are consecutive in memory.  A complete block counts with its
 * signature, and an incomplete one without.
 */
uint64_t sig_place(const struct sig_plan *p, uint64_t wire_offset);

/*
 * The transformer: data goes in with the signatures of one side and comes out with those of the
 * other, in one pass.  The caller may cut both sides into pieces anywhere, and independently of
 * each other.
 */

/* A place in a list of runs.  The list belongs to the caller and must not change. */
struct sig_cursor {
	const struct run *run;
	uint32_t runs;
	size_t at;	/* in the first run */
	uint64_t moved; /* bytes passed since the start */
};

static inline struct sig_cursor sig_cursor(const struct run *run, uint32_t runs)
{
	return (struct sig_cursor){.run = run, .runs = runs};
}

/* How many bytes of the run at the cursor are left; moves past runs that are used up. */
static inline uint64_t sig_cursor_left(struct sig_cursor *c)
{
	while (c->runs && c->at == c->run->len) {
		c->run++;
		c->runs--;
		c->at = 0;
	}
	return c->runs ? c->run->len - c->at : 0;
}

/* The address of those bytes; RUN_DISCARD in a run that drops. */
static inline uint8_t *sig_cursor_at(const struct sig_cursor *c)
{
	return c->run->addr == RUN_DISCARD ? RUN_DISCARD : (uint8_t *)c->run->addr + c->at;
}

/* n is at most what is left of the run. */
static inline void sig_cursor_advance(struct sig_cursor *c, uint64_t n)
{
	c->at += n;
	c->moved += n;
}

/* A side's position in its stream. */
struct sig_mark {
	uint64_t block;
	uint64_t at; /* in the unit: from frame.block on in the signature */
};

/* A plain value: a copy is a snapshot, to which the caller can go back if a packet has to be sent
 * again. */
struct sig_stream {
	const struct sig_plan *plan;
	struct sig_mark in;
	struct sig_mark out;
	uint64_t guard[2]; /* registers, see struct sig_plan */
	uint64_t in_word;  /* what has come of the signature of the input's latest unit */
	uint64_t out_word; /* the output's signature, without the bytes that are copied */
	/* The stream has not seen the input's unit from its beginning, so it does not check it. */
	bool blind;
	uint64_t lead;		/* see sig_stream_lead */
	struct sig_error error; /* the first */
	uint64_t errors;
};

/* Starts at this offset of the wire's stream, which is the access's offset; 0 is the first block of
 * the key.  The plan must live as long as the stream. */
void sig_stream_begin(struct sig_stream *s, const struct sig_plan *p, uint64_t wire_offset);

/*
 * A stream that starts inside a unit needs the data before the start for its guards.
 * sig_stream_lead says how many bytes of the memory's stream, which end where the access begins in
 * memory, the caller has to pass to sig_stream_prime before the first sig_stream_feed; 0: none.
 * Without them the signature of such a unit is wrong, and that of the input is not checked.  False:
 * the cursor had fewer bytes; go on with the rest.
 */
uint64_t sig_stream_lead(const struct sig_stream *s);
bool sig_stream_prime(struct sig_stream *s, struct sig_cursor *memory) must_check;

/*
 * Moves bytes until one of the two cursors ends; the other and the stream stay where they are for
 * the next call.  Drops bytes for RUN_DISCARD.  It touches memory like memcpy: a caller whose runs
 * may be unmapped has to catch the fault; then the stream is unusable, but holds nothing to
 * release.
 */
void sig_stream_feed(struct sig_stream *s, struct sig_cursor *from, struct sig_cursor *to);

/* True if all data under that side's transaction signature has passed; *reg is the register that
 * the next key of the chain begins with. */
bool sig_stream_summed(const struct sig_stream *s, enum sig_side side, uint64_t *reg);

/* Ends a transfer.  Returns the first error, or NULL.  It neither checks nor signs a unit that has
 * only begun; a later transfer may complete that unit, if the caller keeps the stream. */
const struct sig_error *sig_stream_finish(const struct sig_stream *s);

/* The next offset in the wire's or the memory's stream, which says whether a kept stream fits a
 * following access. */
uint64_t sig_stream_at(const struct sig_stream *s, enum sig_side side);
