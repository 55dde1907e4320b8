// SPDX-License-Identifier: BSD-2-Clause
/* Messages of device code a second, for each mode of a stream, until the last is in the file. */
#include <libflexio/flexio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MESSAGES 200000ul

extern struct flexio_app *dpa_code;
extern flexio_func_t print_many, trace_many;

static void must(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "dpa_streams: %s fails\n", what);
		exit(1);
	}
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Thousands a second.  What the stream still holds is written when it is destroyed. */
static double measure(struct flexio_process *process, flexio_msg_dev_sync_mode mode,
		      flexio_func_t *function)
{
	char *formats[] = {"message %lu of %lu\n", NULL};
	flexio_msg_stream_attr_t attr = {.data_bsize = 16 << 20,
					 .sync_mode = mode,
					 .level = FLEXIO_MSG_DEV_INFO,
					 .tracer_msg_formats = formats};
	FILE *out = fopen("/dev/null", "w");
	struct flexio_msg_stream *stream;
	uint64_t result;
	double start;

	must(out && !flexio_msg_stream_create(process, &attr, out, NULL, &stream),
	     "making a stream");
	start = now_s();
	must(!flexio_process_call(process, function, &result, MESSAGES), "a call");
	must(!flexio_msg_stream_destroy(stream), "destroying a stream");
	start = now_s() - start;
	fclose(out);
	return (double)MESSAGES / start * 1e-3;
}

int main(int argc, char **argv)
{
	int count, i = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);
	struct flexio_process *process;
	struct ibv_context *context;

	must(argc == 2 && devices, "finding devices");
	while (i < count && strcmp(ibv_get_device_name(devices[i]), argv[1]) != 0)
		i++;
	must(i < count && (context = ibv_open_device(devices[i])), "opening the device");
	ibv_free_device_list(devices);
	must(!flexio_process_create(context, dpa_code, NULL, &process), "making a process");
	printf("sync %.1f k/s\n", measure(process, FLEXIO_LOG_DEV_SYNC_MODE_SYNC, print_many));
	printf("batch %.1f k/s\n", measure(process, FLEXIO_LOG_DEV_SYNC_MODE_BATCH, print_many));
	printf("async %.1f k/s\n", measure(process, FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, print_many));
	printf("trace %.1f k/s\n", measure(process, FLEXIO_LOG_DEV_SYNC_MODE_TRACER, trace_many));
	must(!flexio_process_destroy(process) && !ibv_close_device(context), "the end");
	return 0;
}
