/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors of Flex IO device code.
 *
 * Source: DOCA Driver APIs 2.6.0 Reference Manual, section 2.3.
 *
 * The status of a process that has ended: 0 none; 1 to 63 the operating system or the firmware; 64
 * to 127 the SDK (0x40 is flexio_dev_process_finish(), no error); 129 to 255 the program.
 */
#ifndef _FLEXIO_DEV_ERR_H_
#define _FLEXIO_DEV_ERR_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct flexio_dev_thread_ctx;

/** Statuses that the SDK sets. */
typedef enum {
	/** flexio_dev_error() was called with a code that is not the program's. */
	FLEXIO_DEV_ERROR_ILLEGAL_ERR = 0x42,
} flexio_dev_error_t;

/**
 * flexio_dev_error() - end the process by an error.
 * @error: its status, 128 to 255; another one ends it by FLEXIO_DEV_ERROR_ILLEGAL_ERR
 *
 * Does not return.
 */
__attribute__((__noreturn__)) void flexio_dev_error(uint8_t error);

/**
 * flexio_dev_get_errno() - the last error of a thread from which it recovered.
 * @dtctx: the thread's context
 *
 * Returns 0 if there is none.
 */
uint64_t flexio_dev_get_errno(struct flexio_dev_thread_ctx *dtctx);

/**
 * flexio_dev_rst_errno() - forget the last error of a thread.
 * @dtctx: the thread's context
 */
void flexio_dev_rst_errno(struct flexio_dev_thread_ctx *dtctx);

/**
 * flexio_dev_get_and_rst_errno() - flexio_dev_get_errno() and flexio_dev_rst_errno().
 * @dtctx: the thread's context
 */
uint64_t flexio_dev_get_and_rst_errno(struct flexio_dev_thread_ctx *dtctx);

#ifdef __cplusplus
}
#endif

#endif
