/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways to memory of another process.  A caller names an access that it has checked; each way is
 * a file that makes the access:
 *
 *   way_kernel   memory of the target, named by its address there: process_vm_readv and writev
 *   way_mapped   memory that both processes map, named by its address here
 *
 * Both ways promise:
 *   - They execute requests in their order.  The caller learns only how many are complete ('done');
 *     the next one may be executed in part.
 *   - They change the last bytes of a request's memory last, and aligned words of 2, 4 and 8 bytes
 *     at once.
 *   - They touch nothing once the target has revoked (access.h), or has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reach/access.h"
#include "reach/alive.h"
#include "base/rseq.h"
#include "base/run.h"
#include "usermem/usermem.h"

/* A process whose memory we reach. */
struct way_peer {
	struct access_table *table;
	const struct alive *alive;
	pid_t pid;
	_Atomic(uint32_t) tid; /* the thread that the kernel way addresses; 0: it is closed */
	_Atomic(uint64_t) refused_ns; /* when the system last refused the kernel way */
	/* Where we note, for people who ask, whether the kernel way is open (note_open or
	 * note_closed).  May be NULL. */
	_Atomic(uint8_t) *note;
	uint8_t note_open, note_closed;
};

/* The most requests of one access. */
#define WAY_REQUESTS (ACCESS_PIECES / 2)
/* The most runs of our memory, after a caller's runs were cut where requests and words begin and
 * end. */
#define WAY_LOCALS (2 * RUNS_MAX + 8 * WAY_REQUESTS)

enum way_verdict {
	WAY_DONE,
	WAY_REVOKED,	 /* the key must be looked at again: it may still allow the access */
	WAY_CLOSED,	 /* the target has ended, or the system forbids it now */
	WAY_FAULT,	 /* memory of one side is not there; 'done' counts complete requests */
	WAY_INTERRUPTED, /* too often, so packets have to do it */
	WAY_UNFIT	 /* this way would not keep words whole */
};

struct way_access {
	struct access hold;	   /* claimed */
	const struct alive *alive; /* the target's */
	uint32_t tid;		   /* way_kernel: as alive_probe has said */
	bool read;		   /* from the target's memory to ours */
	const struct run *local;   /* our memory: as many bytes as all requests together */
	uint32_t nlocal;
	const struct run *remote; /* for each request one run of the target's memory, not empty */
	uint32_t requests;	  /* up to WAY_REQUESTS */
	uint32_t done;		  /* result */
};

/* Returns the thread of the peer that the kernel way addresses; 0: the peer has ended, or the
 * system does not allow it.  Asks again from time to time. */
uint32_t way_kernel_tid(struct way_peer *p);
/* An access has found the kernel way closed. */
void way_kernel_close(struct way_peer *p);

enum way_verdict way_kernel(struct way_access *a) must_check;
/*
 * Reads by the kernel what the peer has sent by reference, as long as *withdrawn is 0 (NULL:
 * whatever happens).  A destination may be RUN_DISCARD.  Stores the last bytes when all else is in
 * place, and only if the peer had withdrawn nothing by then.  WAY_REVOKED: the peer has withdrawn
 * it.
 */
enum way_verdict way_pull(struct way_peer *from, const struct run *dst, uint32_t ndst,
			  const struct run *src, uint32_t nsrc,
			  const _Atomic(uint32_t) *withdrawn) must_check;
/* Writes to the places that the peer has sent, from their byte off on, as long as *withdrawn is 0.
 * Each of these runs is a request of way_kernel. */
enum way_verdict way_push(struct way_peer *to, const struct run *dst, uint32_t ndst, uint64_t off,
			  const struct run *src, uint32_t nsrc,
			  const _Atomic(uint32_t) *withdrawn) must_check;
enum way_verdict way_mapped(struct way_access *a) must_check;

/* Returns the words that a copy of mapped memory checks before each touch: the target's count of
 * revocations, and the word that says that the target lives. */
static inline struct rseq_check way_mapped_check(const struct access *hold,
						 const struct alive *alive)
{
	return (struct rseq_check){
		.wide = hold->revocations,
		.wide_value = hold->seen,
		.word = alive_word(alive),
		.word_value = alive_now(alive),
	};
}

/* Does way_mapped's work for one request of n bytes, from or to one place of ours.  False: the
 * request is not executed, and way_mapped can say why. */
static inline must_check bool way_mapped_one(const struct access *hold, const struct alive *alive,
					     bool read, void *here, void *there, size_t n)
{
	const struct rseq_check check = way_mapped_check(hold, alive);

	return likely(check.word_value) &&
	       likely(usermem_copy_checked(read ? here : there, read ? there : here, n, read,
					   &check) == USERMEM_DONE);
}
