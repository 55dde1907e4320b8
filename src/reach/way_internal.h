/* SPDX-License-Identifier: BSD-2-Clause */
/* What the ways share with each other, and with their tests. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "base/fence.h"
#include "base/return_stack.h"
#include "base/rseq.h"
#include "base/run.h"
#include "base/word.h"
#include "reach/way.h"

/* Walks the two lists of an access together, ours and the target's, as each way has to. */

/* A position in a list of runs. */
struct way_cursor {
	const struct run *run;
	size_t off;
};

static inline char *way_cursor_at(const struct way_cursor *c)
{
	/* The target's address is a number that may be nonsense, which a pointer must not become. */
	return (char *)((uintptr_t)c->run->addr + c->off);
}

/* n: at most what is left of the run. */
static inline void way_cursor_advance(struct way_cursor *c, size_t n)
{
	c->off += n;
	if (c->off == c->run->len) {
		c->run++;
		c->off = 0;
	}
}

/* How many bytes from here on lie in one run of either list; 0 where a run is empty. */
static inline size_t way_cursors_part(const struct way_cursor *a, const struct way_cursor *b)
{
	return min_u64(a->run->len - a->off, b->run->len - b->off);
}

static inline void way_cursors_advance(struct way_cursor *a, struct way_cursor *b, size_t n)
{
	way_cursor_advance(a, n);
	way_cursor_advance(b, n);
}

/*
 * Makes one system call into another process's memory.  The list of the target's pieces stands in
 * the slot, which the target can see.  So if a debugger has stopped the thread at the entry of the
 * call, where the restartable sequence is over, the call still fails if the target revokes
 * meanwhile.
 */

/* One call moves at most this much, so that a revocation waits for some dozen microseconds only: where system
 * calls are dear, calls of a quarter of it take a third longer for the same bytes. */
#define WAY_CALL_BYTES ((1024u << 10) + WORD_BYTES)
/* After so many interruptions we give up.  Each means that the thread was preempted within some
 * nanoseconds, or that somebody steps through it. */
#define WAY_CALL_TRIES 16

/* What the thread holds while it calls. */
struct way_call {
	const struct access *hold;
	const struct alive *alive; /* the target's */
	uint32_t tid;		   /* as alive_probe has said */
	bool read;
};

/* Puts the first piece into the slot; called after the others are there. */
static inline void way_call_first(struct iovec *pieces, void *addr)
{
	/* This store comes before our look at the count.  Whoever revokes moves the count on first,
	 * and then stores the poison. */
	(void)__atomic_exchange_n(&pieces->iov_base, addr, __ATOMIC_SEQ_CST);
	fence_after_rmw();
}

/* Makes the call with the n pieces that stand in the slot.  Returns the bytes that it has moved, or
 * what rseq_syscall returns. */
static inline long way_call_once(const struct way_call *c, const struct iovec *local,
				 unsigned long nlocal, unsigned long n)
{
	const struct rseq_check check = {
		.wide = c->hold->revocations,
		.wide_value = c->hold->seen,
		.word = alive_word(c->alive),
		.word_value = c->tid,
	};
	long ret = rseq_syscall(&check, c->read ? SYS_process_vm_readv : SYS_process_vm_writev,
				(long)c->tid, local, (long)nlocal, c->hold->slot->remote, (long)n);

	return_stack_refill();
	return ret;
}

/* Does the kernel's copy keep the words of a request whole, if the request consists of whole words
 * and has so many bytes? */
bool way_kernel_keeps(size_t bytes);

/* Says why the call has not moved all. */
static inline enum way_verdict way_call_why(const struct access *hold, long moved)
{
	if (access_is_revoked(hold) ||
	    __atomic_load_n(&hold->slot->remote[0].iov_base, __ATOMIC_RELAXED) == ACCESS_POISON)
		return WAY_REVOKED;
	if (moved == RSEQ_ABORTED)
		return WAY_INTERRUPTED;
	/* A short count ends at a page that is not there. */
	return moved == -EFAULT || moved >= 0 ? WAY_FAULT : WAY_CLOSED;
}

/*
 * Says of which requests the kernel's copy routine keeps the words whole, on this processor and
 * kernel.  Nobody promises it.  So way_order_test hammers the routine, and requests go by packets
 * on a kind of processor on which it was not hammered, or where its text does not show it.
 */

struct way_machine {
	bool x86; /* of Intel or AMD */
	bool erms,
		/* String instructions are fast: erms for long copies, fsrm for short ones. */
		fsrm;
	unsigned major, minor; /* the kernel */
};

struct way_copies {
	bool any; /* the routine keeps all words whole, of any request */
	/* Otherwise it keeps those of requests that consist of whole words and have at most so many
	 * bytes; 0: of none. */
	uint64_t most;
};

struct way_copies way_copies_of(const struct way_machine *m) must_check;
struct way_machine way_machine_here(void);

/*
 * Keeps aligned words of the target's memory whole that one copy would not keep whole, because our
 * side of them lies in two runs or at another alignment.  A program may send a header of 12 bytes
 * and its payload from elsewhere: an adapter puts both into one packet, but a copy from run to run
 * writes the word where they meet in two parts.
 */

/* Does one of our runs end inside of an aligned word of a request? */
bool way_is_cut(const struct way_access *a) must_check;

/* Makes the access by accesses of the caller's kind ('by') that are not cut.  Of a write, words
 * where runs of ours meet go through memory of our own; of a read, all bytes do. */
enum way_verdict way_whole(struct way_access *a,
			   enum way_verdict (*by)(struct way_access *a)) must_check;
/* Does the same, but moves all bytes through memory of our own, which lies in its cache lines as
 * the target's does. */
enum way_verdict way_bounced(struct way_access *a,
			     enum way_verdict (*by)(struct way_access *a)) must_check;
