// SPDX-License-Identifier: BSD-2-Clause
/*
 * Thread context, ends of an activation, errors, and waiting for another thread.
 *
 * A function touches the context that a program hands over, so that a wild one faults where it is
 * used.  But the context decides nothing: every function acts on the calling thread.
 */
#include "dpa/device/image.h"

#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_err.h>

int flexio_dev_get_thread_ctx(struct flexio_dev_thread_ctx **dtctx)
{
	struct flexio_dev_thread_ctx *ctx = image_door()->thread_ctx();

	dpa_check_write(dtctx, sizeof(*dtctx));
	*dtctx = ctx;
	return ctx ? 0 : -1;
}

/* For functions that read the context: if the program hands over none, they read the caller's. */
static struct flexio_dev_thread_ctx *thread_ctx_read(struct flexio_dev_thread_ctx *dtctx)
{
	if (!dtctx)
		return image_door()->thread_ctx();
	thread_ctx_touch(dtctx);
	return dtctx;
}

uint32_t flexio_dev_get_thread_id(struct flexio_dev_thread_ctx *dtctx)
{
	return thread_ctx_read(dtctx)->thread_id;
}

flexio_uintptr_t flexio_dev_get_thread_local_storage(struct flexio_dev_thread_ctx *dtctx)
{
	return thread_ctx_read(dtctx)->thread_local_storage;
}

/* The runtime does not return from an end; if it did, device code would run on where it must
 * not. */
static _Noreturn void thread_end(enum dpa_end how)
{
	image_door()->end(how);
	__builtin_trap();
}

void flexio_dev_thread_reschedule(void)
{
	thread_end(DPA_END_RESCHEDULE);
}

void flexio_dev_thread_retrigger(void)
{
	thread_end(DPA_END_RETRIGGER);
}

void flexio_dev_thread_finish(void)
{
	thread_end(DPA_END_FINISH);
}

void flexio_dev_process_finish(void)
{
	thread_end(DPA_END_PROCESS_FINISH);
}

void flexio_dev_yield(struct flexio_dev_thread_ctx *dtctx)
{
	thread_ctx_touch(dtctx);
	image_door()->yield(0);
}

void flexio_dev_yield_and_retrigger(void)
{
	image_door()->yield(1);
}

void flexio_dev_event_handler_activate(uint32_t activation_id)
{
	image_door()->activate(activation_id);
}

const char *flexio_dev_get_current_thread_name(void)
{
	image_door()->thread_name();
	return image_door()->thread_ctx()->thread_name;
}

void flexio_dev_error(uint8_t error)
{
	image_door()->error(error);
	__builtin_trap();
}

/* Recoverable errors of this thread.  Accesses are atomic: the runtime may set one meanwhile. */

uint64_t flexio_dev_get_errno(struct flexio_dev_thread_ctx *dtctx)
{
	return __atomic_load_n(&thread_ctx_read(dtctx)->thread_errno, __ATOMIC_RELAXED);
}

void flexio_dev_rst_errno(struct flexio_dev_thread_ctx *dtctx)
{
	__atomic_store_n(&thread_ctx_read(dtctx)->thread_errno, 0, __ATOMIC_RELAXED);
}

uint64_t flexio_dev_get_and_rst_errno(struct flexio_dev_thread_ctx *dtctx)
{
	return __atomic_exchange_n(&thread_ctx_read(dtctx)->thread_errno, 0, __ATOMIC_RELAXED);
}

/*
 * On the device every thread has its own processor; here threads share a few, so the holder of the
 * lock may be waiting for the processor that this loop keeps busy.
 */
void __dpa_spin_wait(uint32_t round)
{
	if (round < 100) {
#if defined(__aarch64__)
		__asm__ volatile("yield");
#else
		__asm__ volatile("pause");
#endif
		return;
	}
	image_door()->relax();
}
