/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows in the shape of generation 24.10 and later: a thread has two, and the calls name one
 * instead of the thread's context.  Included by flexio_dev.h for programs that ask for it; what the calls
 * do stands there.
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

#define flexio_dev_window_config	 flexio_dev_multi_window_config
#define flexio_dev_window_mkey_config	 flexio_dev_multi_window_mkey_config
#define flexio_dev_window_ptr_acquire	 flexio_dev_multi_window_ptr_acquire
#define flexio_dev_window_copy_from_host flexio_dev_multi_window_copy_from_host
#define flexio_dev_window_copy_to_host	 flexio_dev_multi_window_copy_to_host

#ifdef __cplusplus
}
#endif

#endif
