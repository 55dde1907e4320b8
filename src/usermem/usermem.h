/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that touches application memory.  Registered memory, rings and doorbell records belong
 * to the program, which may unmap them at any moment; a touch of an unmapped page returns false
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

/* Keeps the words of the destination whole. */
bool usermem_copy(void *dst, const void *src, size_t n) must_check;
/* Keeps the words of the source whole, for code that reads memory that others write. */
bool usermem_read(void *dst, const void *src, size_t n) must_check;
bool usermem_load_be32(const void *addr, uint32_t *out) must_check;
bool usermem_store_be32(void *addr, uint32_t v) must_check;
/* Writes a CQE of n bytes (multiple of 8): writes the last 8 bytes last, with release order. */
bool usermem_publish(void *dst, const void *src, size_t n) must_check;
/* Atomic on host-order 64-bit words; addr is 8-byte aligned. *orig gets the old value. */
bool usermem_fetch_add(void *addr, uint64_t add, uint64_t *orig) must_check;
bool usermem_compare_swap(void *addr, uint64_t compare, uint64_t swap, uint64_t *orig) must_check;

enum usermem_verdict {
	USERMEM_DONE,
	USERMEM_REFUSED,    /* a word has another value */
	USERMEM_FAULT,	    /* some of the memory no longer exists */
	USERMEM_INTERRUPTED /* interrupted too often, or no restartable sequences (base/rseq.h) */
};

/*
 * Copies as long as both words have their values.  A thread that was stopped in the middle looks at
 * the words again before it touches the memory.  It copies aligned words at once and the last word
 * last: words of the destination or, if 'read' is set, of the source.
 */
enum usermem_verdict usermem_copy_checked(void *dst, const void *src, size_t n, bool read,
					  const struct rseq_check *check) must_check;

/*
 * Atomics under the same condition, on aligned words in host order; *orig gets the old value.  They
 * exist only on x86-64; elsewhere they return USERMEM_INTERRUPTED.
 */
enum usermem_verdict usermem_fetch_add_checked(void *addr, uint64_t add, uint64_t *orig,
					       const struct rseq_check *check) must_check;
enum usermem_verdict usermem_compare_swap_checked(void *addr, uint64_t compare, uint64_t swap,
						  uint64_t *orig,
						  const struct rseq_check *check) must_check;

/* Copies between run lists of equal length; a destination may be RUN_DISCARD. */
bool usermem_pull(const struct run *dst, uint32_t ndst, const struct run *src,
		  uint32_t nsrc) must_check;
/* The same, but keeps the words of the source whole, as usermem_read does. */
bool usermem_pull_answer(const struct run *dst, uint32_t ndst, const struct run *src,
			 uint32_t nsrc) must_check;

/* usermem_own_ahead asks for so much; the processor sees by itself that a longer copy goes on. */
#define USERMEM_OWN_BYTES 2048u

/*
 * Asks for the lines of the first run, which the caller will copy to.  They may lie in the caches of
 * another processor, and then come one after the other as they are written; a lock that the caller
 * takes next waits for all of them.  This touches nothing, so any address will do.
 */
static inline void usermem_own_ahead(const struct run *to, uint32_t nto)
{
	const uint64_t n = nto && to->addr != RUN_DISCARD ? min_u64(to->len, USERMEM_OWN_BYTES) : 0;

	for (uint64_t off = 0; off < n; off += CACHELINE_BYTES)
		prefetch_to_write((const char *)to->addr + off);
}

/* Touches the byte as a copy from it, or to it, would; false if it cannot. */
bool usermem_touch(void *at, bool write) must_check;
/*
 * Touches all pages of the list.  So if a fault of the program's memory has to wait, the caller
 * waits here and not where a peer waits for us.  Memory that does not exist stays so.
 */
void usermem_bring_in(const struct run *run, uint32_t n, bool write);

/* True if all of it can be read.  Tells which side's memory has made a pull fail; slow. */
bool usermem_readable(const struct run *run, uint32_t n) must_check;

/*
 * Runs work(arg), which touches the memory of these two lists as memcpy does.  False: some of the
 * memory no longer exists, and work was abandoned half-way, so work must hold nothing that somebody
 * has to release.  Does not nest.
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
 * no table of faulting instructions, it jumps and does not return.  False: the fault is not ours.
 */
bool usermem_fault(void *ucontext, const void *addr);
/* The part of usermem_fault for usermem_guarded: jumps out of it if the fault is there. */
void usermem_guarded_fault(const void *addr);
