/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transformer: data goes in with the signatures of one side and comes out with those of the
 * other, in one pass.  The caller may cut both sides into pieces anywhere, and independently of
 * each other.
 */
#pragma once

#include "adapter/sig/error.h"
#include "adapter/sig/plan.h"
#include "base/run.h"

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
