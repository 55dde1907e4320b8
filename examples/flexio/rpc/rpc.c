// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls a function on the DPA of the first device.  rpc_dev.c has the function; dpacc makes an
 * archive of it, which has a symbol of the function's name for us and the device's code for the
 * DPA.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <libflexio/flexio.h>
#include <stdio.h>
#include <stdlib.h>

extern struct flexio_app *rpc_app;
extern flexio_func_t count_primes;

static void check(flexio_status status, const char *what)
{
	if (status != FLEXIO_STATUS_SUCCESS) {
		fprintf(stderr, "%s: status %d\n", what, (int)status);
		exit(1);
	}
}

static struct ibv_context *open_first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (list)
		ibv_free_device_list(list);
	if (!context) {
		fprintf(stderr, "there is no device: try softhca run -- ...\n");
		exit(1);
	}
	return context;
}

int main(void)
{
	flexio_msg_stream_attr_t attr = {.data_bsize = 4096,
					 .sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_SYNC,
					 .level = FLEXIO_MSG_DEV_INFO};
	struct ibv_context *context = open_first_device();
	struct flexio_process *process;
	struct flexio_msg_stream *stream;
	uint64_t primes;

	check(flexio_process_create(context, rpc_app, NULL, &process), "flexio_process_create");
	check(flexio_msg_stream_create(process, &attr, stdout, NULL, &stream),
	      "flexio_msg_stream_create");
	check(flexio_process_call(process, count_primes, &primes, 0u, 100000u),
	      "flexio_process_call");
	check(flexio_msg_stream_destroy(stream), "flexio_msg_stream_destroy");
	printf("the DPA has found %" PRIu64 " primes\n", primes);
	check(flexio_process_destroy(process), "flexio_process_destroy");
	ibv_close_device(context);
	return primes == 9592 ? 0 : 1;
}
