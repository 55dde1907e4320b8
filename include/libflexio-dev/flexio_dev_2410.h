/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows in the shape of generation 24.10 and later: a thread has two, and the calls name one
 * instead of the thread's context.  flexio_dev.h includes this header.  Programs of each generation
 * have the calls with "multi" in their names.  For programs of 24.10 and later the names without it
 * are the same calls, and programs that do not name their generation get both shapes.  The other
 * parameters, the results and the errors of each call are those of the call of flexio_dev.h that it
 * names.
 */
#ifndef _FLEXIO_DEV_2410_H_
#define _FLEXIO_DEV_2410_H_

#ifndef _FLEXIO_DEV_H_
#error "include <libflexio-dev/flexio_dev.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The windows of a thread; those of the calls of 24.01 are number 0. */
enum flexio_window_entity {
	FLEXIO_DEV_WINDOW_ENTITY_0 = 0,
	FLEXIO_DEV_WINDOW_ENTITY_1 = 1,
	FLEXIO_DEV_WINDOW_ENTITY_NUM = 2,
};

/** flexio_dev_window_config() of the window @window_entity. */
flexio_dev_status_t flexio_dev_multi_window_config(enum flexio_window_entity window_entity,
						   uint16_t window_config_id, uint32_t mkey);

/** flexio_dev_window_mkey_config() of the window @window_entity. */
flexio_dev_status_t flexio_dev_multi_window_mkey_config(enum flexio_window_entity window_entity,
							uint32_t mkey);

/** flexio_dev_window_ptr_acquire() of the window @window_entity. */
flexio_dev_status_t flexio_dev_multi_window_ptr_acquire(enum flexio_window_entity window_entity,
							uint64_t haddr, flexio_uintptr_t *daddr);

/** flexio_dev_window_copy_from_host() of the window @window_entity. */
flexio_dev_status_t flexio_dev_multi_window_copy_from_host(enum flexio_window_entity window_entity,
							   void *daddr, uint64_t haddr,
							   uint32_t size);

/** flexio_dev_window_copy_to_host() of the window @window_entity. */
flexio_dev_status_t flexio_dev_multi_window_copy_to_host(enum flexio_window_entity window_entity,
							 uint64_t haddr, const void *daddr,
							 uint32_t size);

#ifdef __FLEXIO_DEV_EITHER

/* A number is a window, a pointer the thread's context. */
#define __FLEXIO_DEV_OVERLOAD static inline __attribute__((__overloadable__, __unused__))

__FLEXIO_DEV_OVERLOAD flexio_dev_status_t flexio_dev_window_config(int window_entity,
								   uint16_t window_config_id,
								   uint32_t mkey)
{
	return flexio_dev_multi_window_config((enum flexio_window_entity)window_entity,
					      window_config_id, mkey);
}

__FLEXIO_DEV_OVERLOAD flexio_dev_status_t flexio_dev_window_mkey_config(int window_entity,
									uint32_t mkey)
{
	return flexio_dev_multi_window_mkey_config((enum flexio_window_entity)window_entity, mkey);
}

__FLEXIO_DEV_OVERLOAD flexio_dev_status_t flexio_dev_window_ptr_acquire(int window_entity,
									uint64_t haddr,
									flexio_uintptr_t *daddr)
{
	return flexio_dev_multi_window_ptr_acquire((enum flexio_window_entity)window_entity, haddr,
						   daddr);
}

__FLEXIO_DEV_OVERLOAD flexio_dev_status_t flexio_dev_window_copy_from_host(int window_entity,
									   void *daddr,
									   uint64_t haddr,
									   uint32_t size)
{
	return flexio_dev_multi_window_copy_from_host((enum flexio_window_entity)window_entity,
						      daddr, haddr, size);
}

__FLEXIO_DEV_OVERLOAD flexio_dev_status_t flexio_dev_window_copy_to_host(int window_entity,
									 uint64_t haddr,
									 const void *daddr,
									 uint32_t size)
{
	return flexio_dev_multi_window_copy_to_host((enum flexio_window_entity)window_entity, haddr,
						    daddr, size);
}

#elif FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)

#define flexio_dev_window_config	 flexio_dev_multi_window_config
#define flexio_dev_window_mkey_config	 flexio_dev_multi_window_mkey_config
#define flexio_dev_window_ptr_acquire	 flexio_dev_multi_window_ptr_acquire
#define flexio_dev_window_copy_from_host flexio_dev_multi_window_copy_from_host
#define flexio_dev_window_copy_to_host	 flexio_dev_multi_window_copy_to_host

#endif

#ifdef __cplusplus
}
#endif

#endif
