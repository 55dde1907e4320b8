// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program as the SDK's samples are: a device by its name, one call, one way out, on which all is destroyed, be it
 * there or not.
 */
#include <libflexio/flexio.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern struct flexio_app *sample_app;
extern flexio_func_t calculate;

static struct ibv_context *open_by_name(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!context)
		fprintf(stderr, "no device %s\n", name);
	return context;
}

int main(int argc, char **argv)
{
	flexio_msg_stream_attr_t attr;
	struct flexio_process *process = NULL;
	struct flexio_msg_stream *stream = NULL;
	struct ibv_context *context;
	uint64_t a, b, sum;
	int failed = 1;

	if (argc != 4)
		return 2;
	a = strtoull(argv[2], NULL, 10);
	b = strtoull(argv[3], NULL, 10);
	context = open_by_name(argv[1]);
	if (!context)
		goto out;
	if (flexio_process_create(context, sample_app, NULL, &process))
		goto out;
	memset(&attr, 0, sizeof(attr));
	attr.uar = flexio_process_get_uar(process);
	attr.data_bsize = 4 * 2048;
	attr.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_SYNC;
	attr.level = FLEXIO_MSG_DEV_DEBUG;
	if (flexio_msg_stream_create(process, &attr, stdout, NULL, &stream))
		goto out;
	if (flexio_process_call(process, &calculate, &sum, a, b))
		goto out;
	printf("Result: %" PRIu64 "\n", sum);
	failed = 0;
out:
	failed |= flexio_msg_stream_destroy(stream) != FLEXIO_STATUS_SUCCESS;
	failed |= flexio_process_destroy(process) != FLEXIO_STATUS_SUCCESS;
	if (context)
		ibv_close_device(context);
	return failed;
}
