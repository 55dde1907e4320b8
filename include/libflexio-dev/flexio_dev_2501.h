/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What generation 25.1 adds to flexio_dev.h, which includes this header.  Names that no earlier
 * generation has, so programs of each generation have them, as with the SDK.
 */
#ifndef _FLEXIO_DEV_2501_H_
#define _FLEXIO_DEV_2501_H_

#ifndef _FLEXIO_DEV_H_
#error "include <libflexio-dev/flexio_dev.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Marks of functions in the SDK's headers, for programs that use them too. */
#define FLEXIO_DEV_STABLE __attribute__((__visibility__("default"), __used__))
#ifdef FLEXIO_DEV_ALLOW_EXPERIMENTAL_API
#define FLEXIO_DEV_EXPERIMENTAL FLEXIO_DEV_STABLE __attribute__((__section__(".text.experimental")))
#else
#define FLEXIO_DEV_EXPERIMENTAL                                             \
	FLEXIO_DEV_STABLE __attribute__((__section__(".text.experimental"), \
					 __deprecated__("this symbol is experimental")))
#endif

#ifndef FLEXIO_DEV_ALWAYS_INLINE
#define FLEXIO_DEV_ALWAYS_INLINE static inline __attribute__((__always_inline__))
#endif

/**
 * flexio_dev_get_current_thread_name() - the name of the calling thread.
 *
 * Here it is the name of the function that the thread began with: a handler, a function that the
 * host calls, or a task.  The string is the thread's, up to 63 bytes, and valid until the activation
 * ends.
 */
const char *flexio_dev_get_current_thread_name(void);

/**
 * flexio_dev_yield_and_retrigger() - flexio_dev_yield() with an event for the calling thread, so
 * that it goes on as soon as its execution unit is free.
 *
 * In an event handler that was made without flexio_event_handler_attr.continuable it does nothing.
 */
void flexio_dev_yield_and_retrigger(void);

/**
 * flexio_dev_event_handler_activate() - bring an event to an event handler of the same process.
 * @activation_id: the handler's number, flexio_event_handler_get_id() of the host; with another
 *	number nothing happens
 */
void flexio_dev_event_handler_activate(uint32_t activation_id);

/**
 * flexio_dev_cross_device_ring_db() - flexio_dev_qp_sq_ring_db() at another device.
 * @device_id: flexio_uar_get_extended_id() of the host
 * @qpn: number of the send queue or queue pair, which was made with that UAR
 * @pi: counter of the block of 64 bytes behind the last work request
 *
 * The thread's outbox stays as it is.  Fails if there is no such device.
 */
flexio_dev_status_t flexio_dev_cross_device_ring_db(flexio_uar_device_id device_id, uint32_t qpn,
						    uint32_t pi);

/**
 * flexio_dev_memcpy16() - copy in units of 2 bytes.
 * @dest: where to, a multiple of 2
 * @src: where from, a multiple of 2
 * @n: bytes, a multiple of 2
 */
static inline void flexio_dev_memcpy16(uint16_t *dest, const uint16_t *src, uint64_t n)
{
	for (uint64_t i = 0; i < n / sizeof(*dest); i++)
		dest[i] = src[i];
}

/**
 * flexio_dev_memcpy32() - copy in units of 4 bytes.
 * @dest: where to, a multiple of 4
 * @src: where from, a multiple of 4
 * @n: bytes, a multiple of 4
 */
static inline void flexio_dev_memcpy32(uint32_t *dest, const uint32_t *src, uint64_t n)
{
	for (uint64_t i = 0; i < n / sizeof(*dest); i++)
		dest[i] = src[i];
}

/**
 * flexio_dev_memcpy64() - copy in units of 8 bytes.
 * @dest: where to, a multiple of 8
 * @src: where from, a multiple of 8
 * @n: bytes, a multiple of 8
 */
static inline void flexio_dev_memcpy64(uint64_t *dest, const uint64_t *src, uint64_t n)
{
	for (uint64_t i = 0; i < n / sizeof(*dest); i++)
		dest[i] = src[i];
}

#ifdef __cplusplus
}
#endif

#endif
