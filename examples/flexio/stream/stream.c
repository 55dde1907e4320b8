// SPDX-License-Identifier: BSD-2-Clause
/*
 * Message streams: what device code says arrives in files of the host program.
 *
 * A process has one default stream and others, each with a number, a level and a mode: a synchronous
 * one writes messages as they come, a batched one several at a time, an asynchronous one when the host
 * asks for them.  A tracer carries records of numbers, of which the host makes text.
 *
 *	make && softhca run -- ./stream
 *
 * Each stream but the first writes into memory here, so that the program can see what came; its end is 0
 * if that was what it expected of each.
 */
#include <infiniband/verbs.h>
#include <libflexio/flexio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

#define MESSAGES 20u
#define TEXT	 4096u

extern struct flexio_app *stream_app;
extern flexio_func_t greet, count, levels, trace_squares;

static struct flexio_process *process;

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

static struct flexio_msg_stream *open_stream(flexio_msg_stream_attr_t attr, FILE *out)
{
	struct flexio_msg_stream *stream;

	attr.data_bsize = 4096;
	check(flexio_msg_stream_create(process, &attr, out, NULL, &stream),
	      "flexio_msg_stream_create");
	return stream;
}

/* A stream that writes into memory. */
struct capture {
	struct flexio_msg_stream *stream;
	FILE *file;
	char *text;
	size_t bytes;
};

static struct capture *capture_open(flexio_msg_stream_attr_t attr)
{
	struct capture *capture = calloc(1, sizeof(*capture));

	if (capture)
		capture->file = open_memstream(&capture->text, &capture->bytes);
	if (!capture || !capture->file) {
		perror("open_memstream");
		exit(1);
	}
	capture->stream = open_stream(attr, capture->file);
	return capture;
}

static uint64_t capture_id(const struct capture *capture)
{
	return (uint64_t)flexio_msg_stream_get_id(capture->stream);
}

/* Closes it: then all that was said has been written.  Returns whether that is the text. */
static int capture_close(struct capture *capture, const char *name, const char *wanted)
{
	int right;

	check(flexio_msg_stream_destroy(capture->stream), "flexio_msg_stream_destroy");
	fclose(capture->file);
	right = !strcmp(capture->text, wanted);
	printf("%s: %s\n", name, right ? "right" : "wrong");
	if (!right)
		printf("%s", capture->text);
	free(capture->text);
	free(capture);
	return right;
}

static const char *wanted_messages(void)
{
	static char text[TEXT];
	int at = 0;

	for (unsigned int i = 1; i <= MESSAGES; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%u of %u\n", i, MESSAGES);
	return text;
}

static const char *wanted_trace(void)
{
	static char text[TEXT];
	int at = snprintf(text, sizeof(text), "%u squares\n", MESSAGES);

	for (unsigned int i = 1; i <= MESSAGES; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "the square of %u is %u\n", i,
			       i * i);
	return text;
}

static void call_count(const struct capture *capture)
{
	uint64_t said;

	check(flexio_process_call(process, count, &said, capture_id(capture), (uint64_t)MESSAGES),
	      "flexio_process_call");
}

/* Modes that need nothing from the host. */
static int writes_by_itself(flexio_msg_dev_sync_mode mode, const char *name)
{
	struct capture *capture = capture_open(
		(flexio_msg_stream_attr_t){.sync_mode = mode, .level = FLEXIO_MSG_DEV_INFO});

	call_count(capture);
	return capture_close(capture, name, wanted_messages());
}

static int writes_when_asked(void)
{
	struct capture *capture = capture_open((flexio_msg_stream_attr_t){
		.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, .level = FLEXIO_MSG_DEV_INFO});
	int right;

	call_count(capture);
	fflush(capture->file);
	right = capture->bytes == 0;
	check(flexio_msg_stream_flush(capture->stream), "flexio_msg_stream_flush");
	fflush(capture->file);
	right = right && capture->bytes == strlen(wanted_messages());
	return capture_close(capture, "asynchronous", wanted_messages()) && right;
}

static void call_levels(const struct capture *capture)
{
	uint64_t zero;

	check(flexio_process_call(process, levels, &zero, capture_id(capture)),
	      "flexio_process_call");
	check(flexio_msg_stream_flush(capture->stream), "flexio_msg_stream_flush");
}

static int shows_levels(void)
{
	struct capture *capture = capture_open((flexio_msg_stream_attr_t){
		.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, .level = FLEXIO_MSG_DEV_WARN});

	call_levels(capture);
	check(flexio_msg_stream_level_set(capture->stream, FLEXIO_MSG_DEV_DEBUG),
	      "flexio_msg_stream_level_set");
	call_levels(capture);
	return capture_close(capture, "levels", "error warning error warning information detail ");
}

static int traces(enum flexio_tracer_transport transport, const char *name)
{
	static char begin[] = "%lu squares\n", square[] = "the square of %lu is %lu\n",
		    detail[] = "now %lu\n";
	static char *formats[TRACE_FORMATS + 1] = {
		[TRACE_BEGIN] = begin,
		[TRACE_SQUARE] = square,
		[TRACE_DETAIL] = detail,
	};
	struct capture *capture = capture_open(
		(flexio_msg_stream_attr_t){.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_TRACER,
					   .level = FLEXIO_MSG_DEV_INFO,
					   .tracer_mode = transport,
					   .tracer_msg_formats = formats});
	uint64_t numbers;

	check(flexio_process_call(process, trace_squares, &numbers, capture_id(capture),
				  (uint64_t)MESSAGES),
	      "flexio_process_call");
	return capture_close(capture, name, wanted_trace());
}

int main(void)
{
	static char stream_name[] = "example";
	struct ibv_context *context = open_first_device();
	struct flexio_msg_stream *stream;
	uint64_t bytes;
	int right = 1;

	check(flexio_process_create(context, stream_app, NULL, &process), "flexio_process_create");
	stream = open_stream((flexio_msg_stream_attr_t){.stream_name = stream_name,
							.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_SYNC,
							.level = FLEXIO_MSG_DEV_INFO},
			     stdout);
	check(flexio_process_call(process, greet, &bytes), "flexio_process_call");
	right &= writes_by_itself(FLEXIO_LOG_DEV_SYNC_MODE_SYNC, "synchronous");
	right &= writes_by_itself(FLEXIO_LOG_DEV_SYNC_MODE_BATCH, "batched");
	right &= writes_when_asked();
	right &= shows_levels();
	right &= traces(FLEXIO_TRACER_TRANSPORT_QP, "tracer");
	right &= traces(FLEXIO_TRACER_TRANSPORT_WINDOW, "tracer by window");
	check(flexio_msg_stream_destroy(stream), "flexio_msg_stream_destroy");
	check(flexio_process_destroy(process), "flexio_process_destroy");
	ibv_close_device(context);
	return right ? 0 : 1;
}
