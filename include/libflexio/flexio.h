/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flex IO host interface: a program makes DPA processes from an application (the device code that
 * dpacc embeds in it), gives them memory and queues, calls their functions and lets completions
 * activate their event handlers.
 *
 * Source of names, types and values: DOCA Driver APIs 2.6.0 Reference Manual, sections 2.1 and 3
 * (Flex IO SDK 24.01).  Programs of later generations see flexio_ver.h.
 *
 * What holds for every function, unless its own text says otherwise:
 *
 * - It returns FLEXIO_STATUS_SUCCESS, or FLEXIO_STATUS_FAILED after a line of the log that names
 *   the function and what is wrong: a pointer that is NULL, an object that is unknown, destroyed or
 *   of another process, a field out of range, a wrong state, a device without a DPA, or no
 *   memory.  A pointer to a result is NULL after a failure.
 * - FLEXIO_STATUS_FATAL_ERR: the DPA process has ended by an error.  What asks it to run code fails
 *   so: calls, tasks, making event handlers and command queues or setting them running, and the
 *   choice of an error handler.  All else goes on to work, because the adapter does it and not the
 *   process's threads: its memory, keys, windows, outboxes, queues and streams, queries, dumps and
 *   destroy functions.  flexio_err_status_get() tells at any time.  After
 *   flexio_dev_process_finish(), the same fails with FLEXIO_STATUS_FAILED.
 * - FLEXIO_STATUS_TIMEOUT: the DPA did not answer within the limit.
 * - Every function may be called by any number of threads at a time, with the same objects too.  A
 *   destroy function waits for other threads that are in a function with its object, and calls of
 *   device code end with their process; whoever comes later is told that the object is not there.
 * - An object that another one uses cannot be destroyed: the destroy function fails and the object
 *   stays.  There are two exceptions: flexio_process_destroy() ends everything, and
 *   flexio_app_destroy() leaves the processes.
 * - Sizes are in bytes, numbers and lengths in the host's byte order.
 * - The functions are not to be called from signal handlers, nor with objects of the parent after
 *   fork().
 */
#ifndef _FLEXIO_SDK_H_
#define _FLEXIO_SDK_H_

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <libflexio/flexio_ver.h>

#ifndef FLEXIO_VER_USED
#define FLEXIO_VER_USED FLEXIO_LAST_SUPPORTED_VERSION
/* A silent program may be of either generation: it gets the later names too. */
#define __FLEXIO_EITHER
#elif FLEXIO_VER_USED == FLEXIO_VER_LATEST
#undef FLEXIO_VER_USED
#define FLEXIO_VER_USED FLEXIO_CURRENT_VERSION
#endif

#if FLEXIO_VER_USED < FLEXIO_LAST_SUPPORTED_VERSION
#error "FLEXIO_VER_USED is an older generation than these headers serve"
#endif

#include <libflexio/flexio_types.h>

#include <libflexio/flexio_app.h>
#include <libflexio/flexio_process.h>
#include <libflexio/flexio_thread.h>
#include <libflexio/flexio_queue.h>
#include <libflexio/flexio_stream.h>

#if FLEXIO_VER_USED >= FLEXIO_VER(24, 10, 0) || defined(__FLEXIO_EITHER)
#include <libflexio/flexio_2410.h>
#endif

#endif
