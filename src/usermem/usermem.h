/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that touches application memory.  Registered memory, rings and doorbell records belong
 * to the program, which may unmap them at any moment; a touch of a page that has gone returns false
 * instead of killing the process.  For that, the signal handler for SIGSEGV and SIGBUS (installed
 * by the driver) offers each fault to usermem_fault() first.
 *
 * Order: copies make the last bytes of the destination visible last, with release order, because
 * programs poll on the last byte of a message.  Aligned words of 2, 4 and 8 bytes are copied at
 * once (base/word.h).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/rseq.h"
#include "base/run.h"

/* The words of the destination. */
bool usermem_copy(void *dst, const void *src, size_t n) must_check;
/* The words of the source: for code that reads memory that others write. */
bool usermem_read(void *dst, const void *src, size_t n) must_check;
bool usermem_load_be32(const void *addr, uint32_t *out) must_check;
bool usermem_store_be32(void *addr, uint32_t v) must_check;
/* Writes a CQE of n bytes (multiple of 8): the last 8 bytes last, with release order. */
bool usermem_publish(void *dst, const void *src, size_t n) must_check;
/* Atomic on host-order 64-bit words; addr is 8-byte aligned. *orig gets the old value. */
bool usermem_fetch_add(void *addr, uint64_t add, uint64_t *orig) must_check;
bool usermem_compare_swap(void *addr, uint64_t compare, uint64_t swap, uint64_t *orig) must_check;

enum usermem_verdict {
	USERMEM_DONE,
	USERMEM_REFUSED,    /* a word has another value */
	USERMEM_FAULT,	    /* some of the memory has gone */
	USERMEM_INTERRUPTED /* too often, or there are no restartable sequences here (base/rseq.h)
			     */
};

/*
 * Copies as long as both words have their values.  A thread that was stopped in the middle looks at
 * them again before it touches the memory.  Aligned words are copied at once, and the last one
 * last: at the destination, or if 'read' is set, of the source.
 */
enum usermem_verdict usermem_copy_checked(void *dst, const void *src, size_t n, bool read,
					  const struct rseq_check *check) must_check;

/*
 * Atomics under the same condition, on aligned words in host order; *orig gets the old value.  Only on x86-64
 * do they exist: elsewhere they are INTERRUPTED.
 */
enum usermem_verdict usermem_fetch_add_checked(void *addr, uint64_t add, uint64_t *orig,
					       const struct rseq_check *check) must_check;
enum usermem_verdict usermem_compare_swap_checked(void *addr, uint64_t compare, uint64_t swap,
						  uint64_t *orig,
						  const struct rseq_check *check) must_check;

/* Copies between run lists of equal length; a destination may be RUN_DISCARD. */
bool usermem_pull(const struct run *dst, uint32_t ndst, const struct run *src,
		  uint32_t nsrc) must_check;
/* As usermem_read. */
bool usermem_pull_answer(const struct run *dst, uint32_t ndst, const struct run *src,
			 uint32_t nsrc) must_check;

/* Touches the byte as a copy from there, or to there, would: false if it cannot be. */
bool usermem_touch(void *at, bool write) must_check;
/*
 * Touches all pages of the list, so that what a fault of the program's own memory waits for is waited
 * for here, and not where a peer waits for us.  Memory that is not there stays so.
 */
void usermem_bring_in(const struct run *run, uint32_t n, bool write);

/* Can all of it be read?  Tells which side of a failed pull has gone; slow. */
bool usermem_readable(const struct run *run, uint32_t n) must_check;

/*
 * Runs work(arg), which touches the memory of these two lists as memcpy does.  False: some of the
 * memory has gone, and work was abandoned half-way, so it must not hold anything that has to be
 * given back.  Does not nest.
 */
struct usermem_list {
	const struct run *run;
	uint32_t n;
};

bool usermem_guarded(void (*work)(void *arg), void *arg, struct usermem_list a,
		     struct usermem_list b) must_check;

/*
 * For the signal handler of SIGSEGV and SIGBUS (installed with SA_SIGINFO, SA_NODEFER and
 * SA_ONSTACK): ucontext is the handler's third argument, addr its si_addr.  If a usermem function
 * of this thread caused the fault, makes that function return false.  It then either returns true,
 * and the handler must return; or, if the fault was inside usermem_guarded or the architecture has
 * no table of faulting instructions, it jumps and does not return.  False: the signal is somebody
 * else's.
 */
bool usermem_fault(void *ucontext, const void *addr);
/* The part of usermem_fault for usermem_guarded: jumps out of it if the fault is there. */
void usermem_guarded_fault(const void *addr);
