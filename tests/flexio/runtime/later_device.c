// SPDX-License-Identifier: BSD-2-Clause
/* Device code of later_host.cpp, as a program of generation 25 is written. */
#include <libflexio-dev/flexio_dev_ver.h>
#define FLEXIO_DEV_VER_USED FLEXIO_DEV_VER(25, 7, 0)
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <libflexio-dev/flexio_dev_debug.h>
#include <libflexio-libc/string.h>
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

static uint64_t is_called(const char *name)
{
	return !strcmp(flexio_dev_get_current_thread_name(), name);
}

uint64_t later_names(uint64_t x);
__dpa_rpc__ uint64_t later_names(uint64_t x)
{
	FLEXIO_DEV_PERF_MEASURE(MEASURED)
	{
		x++;
	}
	SIM_TRACE("a text", x);
	SIM_TRACEVAL(x);
	return is_called("later_names");
}

uint64_t later_peek(uint64_t addr);
__dpa_rpc__ uint64_t later_peek(uint64_t addr)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)addr, __ATOMIC_SEQ_CST);
}

/* Wakes handlers by their numbers, others are nobody's. */
uint64_t later_wake(uint64_t id);
__dpa_rpc__ uint64_t later_wake(uint64_t id)
{
	flexio_dev_event_handler_activate(0xffffff);
	flexio_dev_event_handler_activate((uint32_t)id);
	return 0;
}

flexio_dev_event_handler_t later_woken;
__dpa_global__ void later_woken(uint64_t addr)
{
	__atomic_fetch_add((uint64_t *)(uintptr_t)addr, is_called("later_woken") ? 1 : 1000,
			   __ATOMIC_SEQ_CST);
	flexio_dev_thread_reschedule();
}

/* One event, and ten turns; then it waits for the next event in the middle. */
flexio_dev_event_handler_t later_again;
__dpa_global__ void later_again(uint64_t addr)
{
	uint64_t turns = 0;

	for (;;) {
		__atomic_fetch_add((uint64_t *)(uintptr_t)addr, 1, __ATOMIC_SEQ_CST);
		if (++turns % 10)
			flexio_dev_yield_and_retrigger();
		else
			flexio_dev_yield(NULL);
	}
}

/* A queue that nobody has hears nothing; a device that nobody has is told of. */
uint64_t later_cross(uint64_t device_id);
__dpa_rpc__ uint64_t later_cross(uint64_t device_id)
{
	return flexio_dev_cross_device_ring_db((flexio_uar_device_id)device_id, 0x123456, 1);
}
