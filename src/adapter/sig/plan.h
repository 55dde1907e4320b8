/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plan: a configuration prepared for one direction, with all decisions that need no data.  A key
 * makes two when it is configured; they refer to nothing that can go away.
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
	uint64_t start; /* the guard's register at the beginning of a block */
	uint64_t app;	/* tags, at their place in the word */
	uint32_t ref;
	uint32_t ref_step;
};

struct sig_plan {
	enum sig_direction direction;
	struct sig_frame in;
	struct sig_frame out;
	uint64_t check;	 /* bits of the word that are compared */
	uint64_t copy;	 /* bits of the word that are taken over */
	uint64_t escape; /* if all of these are set nothing is compared; 0: no escape */
	bool lockstep;	 /* same structure: output follows input inside signatures too */
	bool coincide;	 /* blocks begin together on both sides, or one side has none */
	/* The guards that run over the data: the first copies it, the second reads the copy.
	 * Registers: 0 is the input's, 1 the output's unless the two are the same. */
	const struct sig_guard *first;
	const struct sig_guard *second;
	uint8_t first_reg;
	uint8_t out_reg;
};

/* sig_config_decode or sig_config_check has accepted c. */
void sig_plan_make(struct sig_plan *p, const struct sig_config *c, enum sig_direction d);

/*
 * The offset in the memory's stream of the byte at this offset of the wire's stream; UINT64_MAX if
 * there is none.  Accesses name the wire's offset and length; a key's length is the memory's.  So
 * an access touches memory [place(off), place(off + len)), and consecutive accesses on the wire are
 * consecutive in memory.  A complete block counts with its signature, an incomplete one without.
 */
uint64_t sig_place(const struct sig_plan *p, uint64_t wire_offset);
