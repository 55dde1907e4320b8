/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrinsics of DPA programs: fences, fixed-point numbers and counters, for code that dpacc
 * compiles to the machine's own instructions.
 *
 * A program may define DPA_INTRIN_VERSION_USED before it includes this header; there is one
 * version.
 */
#ifndef _DPAINTRIN_H_
#define _DPAINTRIN_H_

#include <stdint.h>

#define DPA_INTRIN_VERSION(major, minor) (((major) << 16) | (minor))

#ifndef DPA_INTRIN_VERSION_USED
#define DPA_INTRIN_VERSION_USED DPA_INTRIN_VERSION(1, 3)
#endif

#if DPA_INTRIN_VERSION_USED != DPA_INTRIN_VERSION(1, 3)
#error "DPA_INTRIN_VERSION_USED: only version 1.3 is there"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a fence orders: memory of the process, windows and outboxes, or everything. */
#define __DPA_HEAP   (0)
#define __DPA_MEMORY (1)
#define __DPA_MMIO   (2)
#define __DPA_SYSTEM (3)

/* Accesses before and behind a fence. */
#define __DPA_R	 (1)
#define __DPA_W	 (2)
#define __DPA_RW (3)

/*
 * Windows and DPA memory are memory of the machine here, and the adapter is another thread: a fence
 * of threads orders all of it, whatever the space.  The arguments are constants, of which the
 * weakest fence that is enough is made; only a store before a load needs the full one.  The device
 * library hears of fences of windows, which it may have copies of (SOFTHCA_DPA_MEMORY).
 */
#define __DPA_FENCE_ORDER(pred, succ)           \
	((pred) == __DPA_R   ? __ATOMIC_ACQUIRE \
	 : (succ) == __DPA_W ? __ATOMIC_RELEASE \
			     : __ATOMIC_SEQ_CST)

/**
 * __dpa_window_fence() - for the fences below, which tell the device library if windows are among
 * what they order.
 * @space: __DPA_MMIO or __DPA_SYSTEM
 * @pred: operations before the fence
 * @succ: operations behind it
 */
void __dpa_window_fence(uint32_t space, uint32_t pred, uint32_t succ);

/* Who looks for data races is to know that a fence of windows orders no other memory. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __DPA_FENCES_MEMORY(space) ((space) != __DPA_MMIO)
#endif
#endif
#ifndef __DPA_FENCES_MEMORY
#define __DPA_FENCES_MEMORY(space) 1
#endif

#ifdef __cplusplus
#define __DPA_ASSERT static_assert
#else
#define __DPA_ASSERT _Static_assert
#endif

/**
 * All accesses to @space of the kind @pred that precede the fence are done before any access of the
 * kind @succ that follows it, as seen by all threads, the host and the adapter.
 *
 * @space: __DPA_HEAP, __DPA_MEMORY, __DPA_MMIO or __DPA_SYSTEM
 * @pred: __DPA_R, __DPA_W or __DPA_RW
 * @succ: __DPA_R, __DPA_W or __DPA_RW
 *
 * The arguments are constants.  The macro is a whole statement with its semicolon, as the SDK's is,
 * and the compiler moves no access across it.
 */
#define __dpa_thread_fence(space, pred, succ)                                              \
	do {                                                                               \
		__DPA_ASSERT((space) >= __DPA_HEAP && (space) <= __DPA_SYSTEM, "a space"); \
		__DPA_ASSERT((pred) >= __DPA_R && (pred) <= __DPA_RW, "an operation");     \
		__DPA_ASSERT((succ) >= __DPA_R && (succ) <= __DPA_RW, "an operation");     \
		__atomic_signal_fence(__ATOMIC_SEQ_CST);                                   \
		if (__DPA_FENCES_MEMORY(space))                                            \
			__atomic_thread_fence(__DPA_FENCE_ORDER(pred, succ));              \
		if ((space) >= __DPA_MMIO)                                                 \
			__dpa_window_fence(space, pred, succ);                             \
		__atomic_signal_fence(__ATOMIC_SEQ_CST);                                   \
	} while (0);

/** Fence of the memory of the process. */
#define __dpa_thread_memory_fence(pred, succ) __dpa_thread_fence(__DPA_MEMORY, pred, succ)
/** Fence of the outbox. */
#define __dpa_thread_outbox_fence(pred, succ) __dpa_thread_fence(__DPA_MMIO, pred, succ)
/** Fence of windows. */
#define __dpa_thread_window_fence(pred, succ) __dpa_thread_fence(__DPA_MMIO, pred, succ)
/** Fence of everything. */
#define __dpa_thread_system_fence() __dpa_thread_fence(__DPA_SYSTEM, __DPA_RW, __DPA_RW)
/** Later reads through windows see what the host has written by then. */
#define __dpa_thread_window_read_inv() __dpa_thread_fence(__DPA_MMIO, __DPA_R, __DPA_R)
/** The host sees earlier writes through windows before later ones. */
#define __dpa_thread_window_writeback() __dpa_thread_fence(__DPA_MMIO, __DPA_W, __DPA_W)
/** Others see earlier writes to the memory of the process before later ones. */
#define __dpa_thread_memory_writeback() __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W)

/** The compiler moves no access to memory across it. */
#define __dpa_compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/** A full fence, because there is no cache to flush here. */
#define __dpa_thread_l1_flush() __dpa_thread_system_fence()

/**
 * Compares the number at @ptr with the one at @expected, and stores @desired at @ptr if they are
 * equal, or else what is at @ptr at @expected; all at once, also for the host and the adapter.  The
 * value is whether they were equal.  On cards ConnectX-8 alone has the instruction.
 *
 * @success, @failure: __ATOMIC_SEQ_CST and the like
 */
#define __dpa_remote_atomic_compare_exchange(ptr, expected, desired, success, failure) \
	__atomic_compare_exchange_n(ptr, expected, desired, 0, success, failure)

/** The program no longer needs the cache line of @addr; nothing follows from it here. */
#define __dpa_data_ignore(addr) ((void)(addr))

/* Fixed-point numbers with 16 bits behind the point. */

/** __dpa_fxp_rcp() - 1 / @n; the largest number for 0. */
uint32_t __dpa_fxp_rcp(uint32_t n);
/** __dpa_fxp_pow2() - 2 to the power of @n. */
uint32_t __dpa_fxp_pow2(int32_t n);
/** __dpa_fxp_log2() - logarithm of @n to the base 2; the smallest number for 0. */
int32_t __dpa_fxp_log2(uint32_t n);

/* Counters that grow from any start value.  A thread compares only values of one activation. */

/** __dpa_thread_cycles() - cycles. */
uint64_t __dpa_thread_cycles(void);
/**
 * __dpa_thread_inst_ret() - instructions, which cannot be counted here: one for each cycle in which
 * the thread had a processor.
 */
uint64_t __dpa_thread_inst_ret(void);
/** __dpa_thread_time() - nanoseconds. */
uint64_t __dpa_thread_time(void);

#ifdef __cplusplus
}
#endif

#endif
