/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plan: a configuration prepared for one direction, with all decisions that need no data.  A key
 * makes two plans when it is configured; they refer to nothing that somebody could free.
 */
#pragma once

#include "adapter/sig/domain.h"
#include "adapter/sig/guard.h"

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
