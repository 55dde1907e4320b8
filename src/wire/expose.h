/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process lays open to its peers on the same machine, so that an RDMA WRITE or READ costs
 * them a copy and nothing else: no packet, no system call, and no processor time of the target, as
 * on hardware.
 *
 * Two shared segments of each process:
 *   exposure   a block per responder (whom it listens to, which PSN comes next) and a block per
 * memory key (what it covers) arena      the memory behind exposed keys (the driver places
 * registered pages there)
 *
 * A peer maps both by way of /proc.  Where it may not, or something is not exposed, packets
 * through the channel do the same, slower.
 *
 * The owner does not trust what lies here: of a responder block it takes back only the PSN and the
 * MSN, which a peer on the wire could choose as well.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/registry.h"

#define EXPOSE_BLOCKS	   65536u	 /* of each kind; numbers that collide are not exposed */
#define EXPOSE_ARENA_BYTES (64ull << 30) /* address space; pages appear as they are used */

/*
 * A responder, as its peer must see it.  The lock is the responder's own.
 *   0         free
 *   slot + 1  held by a thread of that process; taken over if the process has died
 */
struct qp_block {
	cacheline_aligned _Atomic(uint32_t) lock;
	_Atomic(uint32_t) qpn; /* 0: none */
	uint32_t epsn;
	uint32_t msn;
	uint32_t dest_qpn;
	uint32_t dest_port; /* row of the port where the peer lives */
	uint32_t pdn;
	uint32_t access; /* enum ib_access: what the QP allows */
	uint32_t pkey;
	/* It may be written to past the packets: in RTR or RTS, no message in progress, nothing
	 * owed. */
	uint32_t quiet;
};

/* A memory key.  Odd seq: being changed. */
struct key_block {
	cacheline_aligned _Atomic(uint32_t) seq;
	_Atomic(uint32_t) key; /* 0: none */
	uint32_t pdn;
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	uint64_t offset; /* of the first byte in the arena */
};

struct expose_mem {
	struct qp_block qps[EXPOSE_BLOCKS];
	struct key_block keys[EXPOSE_BLOCKS];
};

/* Our own. */
struct expose {
	struct slot *slots;
	uint16_t slot;
	int fd, arena_fd;
	struct expose_mem *mem;
	_Atomic(uint64_t) arena_used;
};

/* A peer's, as mapped here. */
struct far {
	struct expose_mem *mem;
	uint8_t *arena;
	int32_t pid;
	uint32_t alive; /* generation of the slot */
	struct far *next;
};

/* 0 or negative errno; then nothing is exposed and all else works. */
int expose_open(struct expose *e, struct slot *slots, uint16_t slot) must_check;
void expose_close(struct expose *e);
/* Takes the block of a QP number; NULL if another QP has it. */
struct qp_block *expose_qp(struct expose *e, uint32_t qpn);
void expose_qp_end(struct qp_block *b);
/* False if another key has the block. */
bool expose_key(struct expose *e, const struct key_block *k);
void expose_key_end(struct expose *e, uint32_t key);
/* Room in the arena, page-aligned; never used twice, so a late writer harms nobody.  Negative errno
 * if it is used up. */
int64_t expose_arena_take(struct expose *e, uint64_t bytes);

/* Maps a peer's; NULL if it exposes nothing or may not be looked at. */
struct far *far_open(struct slot *slots, uint16_t slot);
void far_close(struct far *f);
/* A consistent copy of the block of a key; false if it is not exposed. */
bool far_key(const struct far *f, uint32_t key, struct key_block *out) must_check;

static inline struct qp_block *far_qp(const struct far *f, uint32_t qpn)
{
	return &f->mem->qps[qpn % EXPOSE_BLOCKS];
}

/* The lock of a responder block; me is our slot. */
static inline bool block_try(struct qp_block *b, uint16_t me)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong_explicit(&b->lock, &free, me + 1u,
						       memory_order_acquire, memory_order_relaxed);
}

/* Waits; takes the lock from a process that died with it. */
void block_lock_slow(struct qp_block *b, const struct slot *slots, uint16_t me);

static inline void block_lock(struct qp_block *b, const struct slot *slots, uint16_t me)
{
	if (unlikely(!block_try(b, me)))
		block_lock_slow(b, slots, me);
}

static inline void block_unlock(struct qp_block *b)
{
	atomic_store_explicit(&b->lock, 0, memory_order_release);
}
