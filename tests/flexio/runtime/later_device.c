// SPDX-License-Identifier: BSD-2-Clause
/* Device code of later_host.cpp, as a program of generation 25 is written. */
#include <libflexio-dev/flexio_dev_ver.h>
#define FLEXIO_DEV_VER_USED FLEXIO_DEV_VER(25, 7, 0)
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <dpaintrin.h>

uint64_t later_add(uint64_t a, uint64_t b);
__dpa_rpc__ uint64_t later_add(uint64_t a, uint64_t b)
{
	flexio_dev_print("device: %lu + %lu\n", a, b);
	return a + b;
}

/* Windows are named by an entity; one that the host did not make is refused. */
uint64_t later_window(uint64_t window_id);
__dpa_rpc__ uint64_t later_window(uint64_t window_id)
{
	return flexio_dev_window_config(FLEXIO_DEV_WINDOW_ENTITY_1, (uint16_t)window_id, 1);
}

/* Doorbells without a context and without a result. */
flexio_dev_event_handler_t later_handler;
__dpa_global__ void later_handler(uint64_t cqn)
{
	flexio_dev_cq_arm(0, (uint32_t)cqn);
	flexio_dev_zcqe_gen((uint32_t)cqn);
	flexio_dev_thread_reschedule();
}
