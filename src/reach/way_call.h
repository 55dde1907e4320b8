/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes one system call into another process's memory.  The list of the target's pieces stands in
 * the slot, which the target can see.  So if a debugger has stopped the thread at the entry of the
 * call, where the restartable sequence is over, the call still fails if the target revokes
 * meanwhile.
 */
#pragma once

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/fence.h"
#include "base/return_stack.h"
#include "base/rseq.h"
#include "base/word.h"
#include "reach/way.h"

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
