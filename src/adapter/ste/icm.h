/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory of steering (ICM): what programs write with RDMA and steering reads, and the device
 * addresses that entries in it name.
 *
 * An address is that of an entry in this memory, or it stands for an object: drop, a TIR, a table
 * that the device owns, a port of the switch.
 *
 * A program makes some allocations of many megabytes, and touches little of them; each frame reads,
 * without a lock.  The first allocation maps its area, which stays mapped.  So an address in a part
 * that was freed reads zeros, and never anything else.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum icm_kind { ICM_STEERING, ICM_MODIFY, ICM_PATTERN, ICM_KINDS };

#define ICM_LOG_STEERING 30u
#define ICM_LOG_MODIFY	 22u /* as far as the index in an entry reaches */
#define ICM_LOG_PATTERN	 18u

/* The address at which the memory of a kind begins; addresses have 40 bits. */
static inline uint64_t icm_base(enum icm_kind kind)
{
	return ((uint64_t)kind + 1) << 32;
}

static inline uint64_t icm_bytes(enum icm_kind kind)
{
	return 1ull << (kind == ICM_STEERING ? ICM_LOG_STEERING
			: kind == ICM_MODIFY ? ICM_LOG_MODIFY
					     : ICM_LOG_PATTERN);
}

struct icm_part {
	struct icm_part *next; /* the next one by offset */
	enum icm_kind kind;
	uint64_t offset;
	uint64_t bytes;
};

struct icm {
	pthread_mutex_t lock;
	struct {
		_Atomic(uint8_t *) memory; /* NULL: nobody has allocated from it */
		struct icm_part *parts;
	} area[ICM_KINDS];
};

void icm_init(struct icm *icm);
void icm_release(struct icm *icm);

/*
 * Allocates a part that is all zero.  Its address is a multiple of its length, rounded up to a
 * power of two, so that tables fit into it.  Returns 0, -EINVAL or -ENOMEM.
 */
int icm_alloc(struct icm *icm, enum icm_kind kind, uint64_t bytes,
	      struct icm_part **out) must_check;
void icm_free(struct icm *icm, struct icm_part *part);
uint64_t icm_part_address(const struct icm_part *part);
uint8_t *icm_part_memory(const struct icm *icm, const struct icm_part *part);

/* Copies n bytes, a multiple of 8, from an address that is a multiple of 8, too.  False: some bytes
 * do not exist.  It reads an entry as a whole. */
bool icm_read(const struct icm *icm, enum icm_kind kind, uint64_t address, void *to,
	      uint32_t n) must_check;

/* ---- addresses of objects ---- */

enum steer_kind {
	STEER_NOWHERE, /* no object has the address */
	STEER_ENTRY,   /* it lies in ICM_STEERING */
	STEER_DROP,
	STEER_ALLOW, /* for sent frames: they go on to the switch */
	STEER_TIR,
	STEER_TABLE, /* a table that the device owns */
	STEER_VPORT, /* a port of the switch; STEER_UPLINK */
	STEER_SAMPLER,
	STEER_KINDS,
};

#define STEER_UPLINK 0xffffu

struct steer_target {
	enum steer_kind kind;
	uint32_t number;
	uint64_t address; /* an entry's address */
};

#define STEER_OBJECT_SHIFT 30u
#define STEER_NUMBER_MASK  0xffffffu

/* number: it has up to 24 bits. */
static inline uint64_t steer_address(enum steer_kind kind, uint32_t number)
{
	return 1ull << 39 | (uint64_t)kind << STEER_OBJECT_SHIFT | (uint64_t)number << 6;
}

struct steer_target steer_target_of(uint64_t address);
