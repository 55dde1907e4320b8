/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways to memory of another process.  A caller names an access that it has checked; each way is
 * a file that makes it:
 *
 *   way_kernel   memory of the target, named by its address there: process_vm_readv and writev
 *   way_mapped   memory that both processes map, named by its address here
 *
 * What they promise alike:
 *   - Requests are executed in their order, each whole or not at all, as far as the caller can
 *     tell: 'done' counts those that are complete, the next may be so in part.
 *   - The last bytes of a request's memory change last; aligned words of 2, 4 and 8 bytes at once.
 *   - Nothing is touched once the target has revoked (access.h), or has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reach/access.h"
#include "reach/alive.h"
#include "base/rseq.h"
#include "base/run.h"
#include "usermem/usermem.h"

/* A process whose memory is reached. */
struct way_peer {
	struct access_table *table;
	const struct alive *alive;
	pid_t pid;
	_Atomic(uint32_t) tid; /* the thread that the kernel way addresses; 0: it is closed */
	_Atomic(uint64_t) refused_ns; /* when that was last found not to be allowed */
	/* Told which of the two it is, for people who ask; may be NULL. */
	_Atomic(uint8_t) *note;
	uint8_t note_open, note_closed;
};

/* The most requests of one access. */
#define WAY_REQUESTS (ACCESS_PIECES / 2)
/* The most runs of ours, when those of a caller are cut where requests and words begin and end. */
#define WAY_LOCALS (2 * RUNS_MAX + 8 * WAY_REQUESTS)

enum way_verdict {
	WAY_DONE,
	WAY_REVOKED,	 /* look at the key again: it may be allowed still */
	WAY_CLOSED,	 /* the target has ended, or the system forbids it now */
	WAY_FAULT,	 /* memory of one side is not there; 'done' counts what is complete */
	WAY_INTERRUPTED, /* too often; packets will do */
	WAY_UNFIT	 /* this way would not keep words whole */
};

struct way_access {
	struct access hold;	   /* claimed */
	const struct alive *alive; /* the target's */
	uint32_t tid;		   /* way_kernel: as alive_probe has said */
	bool read;		   /* from the target's memory to ours */
	const struct run *local;   /* as many bytes as all requests together */
	uint32_t nlocal;
	const struct run *remote; /* of each request one run of the target's memory, not empty */
	uint32_t requests;	  /* up to WAY_REQUESTS */
	uint32_t done;		  /* result */
};

/* The thread of the peer to address; 0: it ends, or the system does not allow it.  Asks again from
 * time to time. */
uint32_t way_kernel_tid(struct way_peer *p);
/* An access found it closed. */
void way_kernel_close(struct way_peer *p);

enum way_verdict way_kernel(struct way_access *a) must_check;
/*
 * Reads what the peer has sent by reference, as long as *withdrawn is 0 (NULL: whatever happens),
 * by the kernel.  A destination may be RUN_DISCARD.  The last bytes are stored when all else is in
 * place, and only if nothing was withdrawn by then.  WAY_REVOKED: it was.
 */
enum way_verdict way_pull(struct way_peer *from, const struct run *dst, uint32_t ndst,
			  const struct run *src, uint32_t nsrc,
			  const _Atomic(uint32_t) *withdrawn) must_check;
/*
 * The other way round: writes to the places that the peer has sent, from byte off of them on, as long
 * as *withdrawn is 0.  Each of its runs as a request of way_kernel.
 */
enum way_verdict way_push(struct way_peer *to, const struct run *dst, uint32_t ndst, uint64_t off,
			  const struct run *src, uint32_t nsrc,
			  const _Atomic(uint32_t) *withdrawn) must_check;
enum way_verdict way_mapped(struct way_access *a) must_check;

/* What a copy of memory that both map looks at before each touch. */
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

/* way_mapped for one request of so many bytes, from or to one place of ours.  False: it is not done,
 * and way_mapped says why. */
static inline must_check bool way_mapped_one(const struct access *hold, const struct alive *alive,
					     bool read, void *here, void *there, size_t n)
{
	const struct rseq_check check = way_mapped_check(hold, alive);

	return likely(check.word_value) &&
	       likely(usermem_copy_checked(read ? here : there, read ? there : here, n, read,
					   &check) == USERMEM_DONE);
}
