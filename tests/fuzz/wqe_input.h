/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The language of the wqe target's inputs.  An operation's byte is its number plus OP_COUNT times
 * the queue pair.
 */
#pragma once

enum op {
	OP_SEND, /* a work request from parts */
	OP_RECV,
	OP_SRQ_RECV,
	OP_RAW, /* bytes into a ring or record */
	OP_BELL,
	OP_PROGRESS,
	OP_MODIFY,
	OP_QUERY,
	OP_CONSUME, /* the CQ's consumer index and arm record */
	OP_CLOSE_MEMORY,
	OP_REREGISTER,
	OP_GROUP, /* attach to a multicast group, or detach */
	OP_FLOW,
	OP_MODERATE,
	OP_COUNT,
};

/* parts: bits say what stands between control segment and data. */
enum part { PART_AV = 1, PART_AV_SHORT = 2, PART_RADDR = 4, PART_ATOMIC = 8, PART_INLINE = 16 };

/* shape of a work request that changes a list */
#define LIST_POINTER 1u
#define LIST_BSF     2u
#define LIST_STRIDED 4u

/*
 * A place in registered memory: u8 which, u16 off.  Counted from the end as well, for it is there
 * that checks are wrong by one.
 */
#define PLACE_REGION(which) ((which)&7u)
#define PLACE_KEY_ON(which) ((which) >> 3 & 7u) /* the key's region, so much further on */
#define PLACE_FROM_END	    0x40u
#define PLACE_ODD	    0x80u /* what its user makes of it */
