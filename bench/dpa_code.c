// SPDX-License-Identifier: BSD-2-Clause
/* What bench/dpa_streams runs on the DPA. */
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_tracer.h>

__dpa_rpc__ uint64_t print_many(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		flexio_dev_print("message %lu of %lu\n", i, count);
	return 0;
}

__dpa_rpc__ uint64_t trace_many(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		flexio_dev_trace_2(0, FLEXIO_MSG_DEV_INFO, 0, i, count);
	flexio_dev_tracer_flush(0);
	return 0;
}
