/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flex IO device interface: threads, messages, outboxes, windows and locks, for code that dpacc
 * compiles.
 *
 * Source of names, types and values: DOCA Driver APIs 2.6.0 Reference Manual, section 2.2 (Flex IO
 * SDK 24.01). Programs of later generations see flexio_dev_ver.h.
 *
 * What holds for every function, unless its own text says otherwise:
 *
 * - It acts on the calling thread, whose context flexio_dev_get_thread_ctx() gives.
 * - Any number of threads may call it at a time.
 * - Sizes are in bytes, numbers in the byte order of the machine.
 * - A pointer to memory that the process does not have ends the process by a fault.
 */
#ifndef _FLEXIO_DEV_H_
#define _FLEXIO_DEV_H_

#include <stddef.h>
#include <stdint.h>

#include <libflexio-dev/flexio_dev_ver.h>

#ifndef FLEXIO_DEV_VER_USED
#define FLEXIO_DEV_VER_USED FLEXIO_DEV_LAST_SUPPORTED_VERSION
/* A silent program may be of either generation: calls of both shapes are taken. */
#if defined(__clang__) && !defined(__cplusplus)
#define __FLEXIO_DEV_EITHER
#endif
#elif FLEXIO_DEV_VER_USED == FLEXIO_DEV_VER_LATEST
#undef FLEXIO_DEV_VER_USED
#define FLEXIO_DEV_VER_USED FLEXIO_DEV_CURRENT_VERSION
#endif

#if FLEXIO_DEV_VER_USED < FLEXIO_DEV_LAST_SUPPORTED_VERSION
#error "FLEXIO_DEV_VER_USED is an older generation than these headers serve"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __unused
#define __unused __attribute__((__unused__))
#endif

/* Older programs have these around their entry functions; nothing needs them. */
#define __FLEXIO_ENTRY_POINT_START
#define __FLEXIO_ENTRY_POINT_END

/** An address in the memory of the DPA process. */
typedef uint64_t flexio_uintptr_t;

/** Number by which flexio_dev_outbox_config_uar_extension() selects a device. */
typedef uint32_t flexio_uar_device_id;

/** What most functions return. */
typedef enum {
	FLEXIO_DEV_STATUS_SUCCESS = 0,
	FLEXIO_DEV_STATUS_FAILED = 1,
} flexio_dev_status_t;

/** When a work request makes a completion: argument ce of flexio_dev_swqe_seg_ctrl_set(). */
enum cq_ce_mode {
	/** If the request fails. */
	MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR = 0x0,
	/** If the request is the first that fails. */
	MLX5_CTRL_SEG_CE_CQE_ON_FIRST_CQE_ERROR = 0x1,
	/** Always. */
	MLX5_CTRL_SEG_CE_CQE_ALWAYS = 0x2,
	/** Always, and with an event. */
	MLX5_CTRL_SEG_CE_CQE_AND_EQE = 0x3,
};

/** Counters of the ports, in bytes, for flexio_dev_nic_counters_config(). */
enum flexio_dev_nic_counter_ids {
	FLEXIO_DEV_NIC_COUNTER_PORT0_RX_BYTES = 0x10,
	FLEXIO_DEV_NIC_COUNTER_PORT1_RX_BYTES = 0x11,
	FLEXIO_DEV_NIC_COUNTER_PORT2_RX_BYTES = 0x12,
	FLEXIO_DEV_NIC_COUNTER_PORT3_RX_BYTES = 0x13,
	FLEXIO_DEV_NIC_COUNTER_PORT0_TX_BYTES = 0x20,
	FLEXIO_DEV_NIC_COUNTER_PORT1_TX_BYTES = 0x21,
	FLEXIO_DEV_NIC_COUNTER_PORT2_TX_BYTES = 0x22,
	FLEXIO_DEV_NIC_COUNTER_PORT3_TX_BYTES = 0x23,
};

/** Context of a thread. */
struct flexio_dev_thread_ctx;

/** Type of an RPC function of one argument, whose result goes to flexio_process_call(). */
typedef uint64_t(flexio_dev_rpc_handler_t)(uint64_t arg);

/**
 * Type of the functions that take the arguments of a call out of a buffer and call the function;
 * dpacc makes one for each annotated function.
 * @argbuf: what the host's pack function stored
 * @func: the function
 * Returns the function's result.
 */
typedef uint64_t(flexio_dev_arg_unpack_func_t)(void *argbuf, void *func);

/** Type of a task of a command queue. */
typedef void(flexio_dev_async_rpc_handler_t)(uint64_t arg);

/**
 * Type of an event handler, whose argument is that of flexio_event_handler_run().  It ends with one
 * of flexio_dev_thread_reschedule(), _retrigger(), _finish() and flexio_dev_process_finish().
 */
typedef void(flexio_dev_event_handler_t)(uint64_t thread_arg);

/**
 * flexio_dev_get_thread_ctx() - the context of the calling thread.
 * @dtctx: receives it; it is valid until the activation ends
 *
 * Returns 0, or a negative value on failure.  A thread calls it at the start of each activation.
 */
int flexio_dev_get_thread_ctx(struct flexio_dev_thread_ctx **dtctx);

/**
 * flexio_dev_get_thread_id() - the number of a thread, flexio_event_handler_get_id() of the host.
 * @dtctx: the thread's context, or NULL for the calling thread
 */
uint32_t flexio_dev_get_thread_id(struct flexio_dev_thread_ctx *dtctx);

/**
 * flexio_dev_get_thread_local_storage() - the address that the host gave the thread.
 * @dtctx: the thread's context, or NULL for the calling thread
 *
 * Returns flexio_event_handler_attr.thread_local_storage_daddr; 0 if there is none.
 */
flexio_uintptr_t flexio_dev_get_thread_local_storage(struct flexio_dev_thread_ctx *dtctx);

/** flexio_dev_thread_reschedule() - end the activation: the next event starts the function anew. */
__attribute__((__noreturn__)) void flexio_dev_thread_reschedule(void);

/** flexio_dev_thread_retrigger() - end the activation and start the function anew at once. */
__attribute__((__noreturn__)) void flexio_dev_thread_retrigger(void);

/** flexio_dev_thread_finish() - end the thread: no event starts it again. */
__attribute__((__noreturn__)) void flexio_dev_thread_finish(void);

/**
 * flexio_dev_process_finish() - end the process without an error.
 *
 * All its threads stop, and none is started again; the status of the process is 0x40.
 */
__attribute__((__noreturn__)) void flexio_dev_process_finish(void);

/**
 * flexio_dev_yield() - wait for the next event and go on behind the call, with stack and variables
 * as they are.
 * @dtctx: the thread's context
 *
 * In an event handler that was made without flexio_event_handler_attr.continuable it does nothing.
 */
void flexio_dev_yield(struct flexio_dev_thread_ctx *dtctx);

/** flexio_dev_reschedule() - older name of flexio_dev_thread_reschedule(). */
__attribute__((__noreturn__)) static inline void flexio_dev_reschedule(void)
{
	flexio_dev_thread_reschedule();
}

/** flexio_dev_finish() - older name of flexio_dev_process_finish(). */
__attribute__((__noreturn__)) static inline void flexio_dev_finish(void)
{
	flexio_dev_process_finish();
}

/* Levels of messages and streams.  A stream shows messages of its own level and of those above. */
#define FLEXIO_MSG_DEV_NO_PRINT	    (0)
#define FLEXIO_MSG_DEV_ALWAYS_PRINT (1)
#define FLEXIO_MSG_DEV_ERROR	    (2)
#define FLEXIO_MSG_DEV_WARN	    (3)
#define FLEXIO_MSG_DEV_INFO	    (4)
#define FLEXIO_MSG_DEV_DEBUG	    (5)

/** Number of the default stream, and the one that stands for all streams. */
#define FLEXIO_MSG_DEV_DEFAULT_STREAM_ID (0)
#define FLEXIO_MSG_DEV_BROADCAST_STREAM	 (0xff)

/** One of the levels above. */
typedef uint8_t flexio_msg_dev_level;

/**
 * flexio_dev_msg() - send a message to a stream of the host.
 * @stream_id: number of the stream, flexio_msg_stream_get_id() of the host; a message to one that
 *	does not exist is dropped
 * @level: level of the message
 * @format: as of printf
 * @...: its arguments
 *
 * The text of one message stays together, whatever other threads send.  Returns what printf would.
 */
__attribute__((__format__(__printf__, 3, 4))) int
flexio_dev_msg(int stream_id, flexio_msg_dev_level level, const char *format, ...);

/**
 * flexio_dev_puts() - send a string to the default stream.
 * @dtctx: the thread's context
 * @str: the string; no newline is added
 *
 * Returns its length.  Without a default stream nothing is sent.
 */
int flexio_dev_puts(struct flexio_dev_thread_ctx *dtctx, char *str);

/** flexio_dev_msg() to all streams. */
#define flexio_dev_msg_broadcast(lvl, ...) \
	flexio_dev_msg(FLEXIO_MSG_DEV_BROADCAST_STREAM, lvl, __VA_ARGS__)

/** flexio_dev_msg() to the default stream. */
#define flexio_dev_msg_dflt(lvl, ...) \
	flexio_dev_msg(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, lvl, __VA_ARGS__)

/** flexio_dev_msg() to the default stream, level FLEXIO_MSG_DEV_INFO. */
#define flexio_dev_print(...) \
	flexio_dev_msg(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, FLEXIO_MSG_DEV_INFO, __VA_ARGS__)

/* flexio_dev_msg() of one level. */
#define flexio_dev_msg_err(strm_id, ...)  flexio_dev_msg(strm_id, FLEXIO_MSG_DEV_ERROR, __VA_ARGS__)
#define flexio_dev_msg_warn(strm_id, ...) flexio_dev_msg(strm_id, FLEXIO_MSG_DEV_WARN, __VA_ARGS__)
#define flexio_dev_msg_info(strm_id, ...) flexio_dev_msg(strm_id, FLEXIO_MSG_DEV_INFO, __VA_ARGS__)
#define flexio_dev_msg_dbg(strm_id, ...)  flexio_dev_msg(strm_id, FLEXIO_MSG_DEV_DEBUG, __VA_ARGS__)

/**
 * flexio_dev_outbox_config() - choose the outbox through which the thread rings doorbells.
 * @dtctx: the thread's context
 * @outbox_config_id: flexio_outbox_get_id() of the host
 *
 * Fails if there is no such outbox; the thread then keeps the one that it has.
 */
flexio_dev_status_t flexio_dev_outbox_config(struct flexio_dev_thread_ctx *dtctx,
					     uint16_t outbox_config_id);

/**
 * flexio_dev_outbox_config_fast() - flexio_dev_outbox_config() without a check.
 * @dtctx: the thread's context
 * @outbox_config_id: flexio_outbox_get_id() of the host; with another number, rings are lost
 */
void flexio_dev_outbox_config_fast(struct flexio_dev_thread_ctx *dtctx, uint16_t outbox_config_id);

/**
 * flexio_dev_outbox_config_uar_extension() - choose the device at which the thread rings doorbells.
 * @dtctx: the thread's context
 * @device_id: flexio_uar_get_extended_id() of the host
 *
 * Fails if there is no such device; the thread then keeps the one that it has.
 */
flexio_dev_status_t flexio_dev_outbox_config_uar_extension(struct flexio_dev_thread_ctx *dtctx,
							   flexio_uar_device_id device_id);

/**
 * flexio_dev_window_config() - choose the thread's window and key.
 * @dtctx: the thread's context
 * @window_config_id: flexio_window_get_id() of the host
 * @mkey: key of memory of the host, in the window's protection domain
 *
 * Fails if there is no such window or key.
 */
flexio_dev_status_t flexio_dev_window_config(struct flexio_dev_thread_ctx *dtctx,
					     uint16_t window_config_id, uint32_t mkey);

/**
 * flexio_dev_window_mkey_config() - choose another key for the thread's window.
 * @dtctx: the thread's context
 * @mkey: the key; pointers that were acquired before go through it as well
 *
 * Fails if there is no such key or if the thread has no window.
 */
flexio_dev_status_t flexio_dev_window_mkey_config(struct flexio_dev_thread_ctx *dtctx,
						  uint32_t mkey);

/**
 * flexio_dev_window_ptr_acquire() - the address by which the thread reaches an address of the host.
 * @dtctx: the thread's context
 * @haddr: the host's address
 * @daddr: receives the address: @haddr and one distance that is the same for all addresses
 *
 * Fails if the thread has no window, or if its key is one of a list or of strides of memory: such
 * memory has no address of this kind, and only copies reach it.  An access outside of the key's
 * memory, or one that the key does not allow, is a fault.
 */
flexio_dev_status_t flexio_dev_window_ptr_acquire(struct flexio_dev_thread_ctx *dtctx,
						  uint64_t haddr, flexio_uintptr_t *daddr);

/**
 * flexio_dev_window_copy_from_host() - copy from the host through the thread's window.
 * @dtctx: the thread's context
 * @daddr: where to
 * @haddr: the host's address
 * @size: how many bytes
 *
 * The manual says that this call is not supported; softhca supports it.
 */
flexio_dev_status_t flexio_dev_window_copy_from_host(struct flexio_dev_thread_ctx *dtctx,
						     void *daddr, uint64_t haddr, uint32_t size);

/**
 * flexio_dev_window_copy_to_host() - copy to the host through the thread's window.
 * @dtctx: the thread's context
 * @haddr: the host's address
 * @daddr: what
 * @size: how many bytes
 */
flexio_dev_status_t flexio_dev_window_copy_to_host(struct flexio_dev_thread_ctx *dtctx,
						   uint64_t haddr, const void *daddr,
						   uint32_t size);

/**
 * flexio_dev_get_pcc_table_base() - the table of programmable congestion control of a function.
 * @gvmi: number of the function; 0: the one that the process is on
 *
 * Returns the address of a struct flexio_dev_pcc_table (flexio_dev_pcc.h), or 0: there is none.
 */
uint64_t flexio_dev_get_pcc_table_base(uint16_t gvmi);

/**
 * flexio_dev_nic_counters_config() - choose counters for flexio_dev_nic_counters_sample().
 * @values: receives one value of 32 bits for each at every sample
 * @counter_ids: enum flexio_dev_nic_counter_ids
 * @num_counters: how many
 *
 * Both arrays are global or on the heap.  A process has one choice at a time.  Too many counters,
 * an unknown one or a wrong address end the process by a fault.
 */
void flexio_dev_nic_counters_config(uint32_t *values, uint32_t *counter_ids, uint32_t num_counters);

/**
 * flexio_dev_nic_counters_sample() - read the counters of flexio_dev_nic_counters_config().
 *
 * Without a choice the process ends by a fault.
 */
void flexio_dev_nic_counters_sample(void);

/** A lock for a few instructions: those who wait keep their EUs busy.  4 bytes. */
struct spinlock_s {
	/** 1: somebody has it. */
	uint32_t locked;
#ifdef SPINLOCK_DEBUG
	/** Number of the thread that has it; 0xffffffff: nobody. */
	uint32_t locker_tid;
#endif
};

/**
 * __dpa_spin_wait() - what a thread does between two looks at a lock that is taken.
 * @round: how many looks there were
 */
void __dpa_spin_wait(uint32_t round);

#ifdef SPINLOCK_DEBUG
static inline uint32_t __flexio_dev_own_tid(void)
{
	struct flexio_dev_thread_ctx *dtctx = NULL;

	return flexio_dev_get_thread_ctx(&dtctx) ? 0xffffffffu : flexio_dev_get_thread_id(dtctx);
}
#define __SPIN_TAKEN(lock) \
	__atomic_store_n(&((lock)->locker_tid), __flexio_dev_own_tid(), __ATOMIC_RELAXED)
#define __SPIN_FREE(lock) __atomic_store_n(&((lock)->locker_tid), 0xffffffffu, __ATOMIC_RELAXED)
#else
#define __SPIN_TAKEN(lock) ((void)0)
#define __SPIN_FREE(lock)  ((void)0)
#endif

/** spin_init() - make @lock, a pointer to a struct spinlock_s, free, before the first use. */
#define spin_init(lock)                                                   \
	do {                                                              \
		__SPIN_FREE(lock);                                        \
		__atomic_store_n(&((lock)->locked), 0, __ATOMIC_SEQ_CST); \
	} while (0)

/** spin_lock() - wait until @lock is free, and take it. */
#define spin_lock(lock)                                                               \
	do {                                                                          \
		uint32_t __spin_round = 0;                                            \
		while (__atomic_exchange_n(&((lock)->locked), 1, __ATOMIC_SEQ_CST)) { \
			__dpa_spin_wait(__spin_round++);                              \
		}                                                                     \
		__SPIN_TAKEN(lock);                                                   \
	} while (0)

/** spin_trylock() - take @lock if it is free.  The value is 0 if it was free, otherwise 1. */
#ifdef SPINLOCK_DEBUG
#define spin_trylock(lock)                                                \
	(__atomic_exchange_n(&((lock)->locked), 1, __ATOMIC_SEQ_CST) ? 1u \
								     : (__SPIN_TAKEN(lock), 0u))
#else
#define spin_trylock(lock) __atomic_exchange_n(&((lock)->locked), 1, __ATOMIC_SEQ_CST)
#endif

/** spin_unlock() - give @lock back. */
#define spin_unlock(lock)                                                 \
	do {                                                              \
		__SPIN_FREE(lock);                                        \
		__atomic_store_n(&((lock)->locked), 0, __ATOMIC_SEQ_CST); \
	} while (0)

#ifdef __cplusplus
}
#endif

#include <libflexio-dev/flexio_dev_2410.h>
#include <libflexio-dev/flexio_dev_2501.h>

#endif
