// SPDX-License-Identifier: BSD-2-Clause
/* The tracer: records of device code, which its stream makes text of. */
#include "process.h"

static void destroy(struct flexio_msg_stream *stream)
{
	CHECK(flexio_msg_stream_destroy(stream) == FLEXIO_STATUS_SUCCESS);
}

static char *formats[] = {"nothing\n",
			  "one %lu\n",
			  "%lu %lu\n",
			  "%lu %lu %lu\n",
			  "%lu %lu %lu %lu\n",
			  "%lu %lu %lu %lu %lu\n",
			  "%lu %lu %lu %lu %lu 0x%lx\n",
			  "%lu:%lu\n",
			  NULL};
#define ALL_TRACES "nothing\none 1\n1 2\n1 2 3\n1 2 3 4\n1 2 3 4 5\n1 2 3 4 5 0x6\n"

static struct flexio_msg_stream *make_tracer(enum flexio_tracer_transport transport, FILE *out)
{
	flexio_msg_stream_attr_t attr = {.data_bsize = 2048,
					 .sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_TRACER,
					 .level = FLEXIO_MSG_DEV_INFO,
					 .tracer_mode = transport,
					 .tracer_msg_formats = formats};
	struct flexio_msg_stream *stream;

	CHECK(flexio_msg_stream_create(process, &attr, out, NULL, &stream) ==
	      FLEXIO_STATUS_SUCCESS);
	return stream;
}

static void tracer(enum flexio_tracer_transport transport)
{
	FILE *out = capture_open();
	struct flexio_msg_stream *stream = make_tracer(transport, out);

	CALL(trace_all, 0ul, (uint64_t)FLEXIO_MSG_DEV_INFO);
	CALL(trace_all, 0ul, (uint64_t)FLEXIO_MSG_DEV_DEBUG);
	CALL(trace_all, 1ul, (uint64_t)FLEXIO_MSG_DEV_INFO);
	/* 7 records are no full buffer of 32 */
	CHECK(!*capture_text(out));
	CALL(trace_flush, 0ul);
	capture_expect(out, ALL_TRACES);
	/* formats that there are not: nothing is printed, and nobody falls over */
	CALL(trace_wrong, 0ul);
	CALL(trace_all, 0ul, (uint64_t)FLEXIO_MSG_DEV_ERROR);
	destroy(stream);
	capture_expect(out, ALL_TRACES ALL_TRACES);
	CALL(trace_all, 0ul, (uint64_t)FLEXIO_MSG_DEV_INFO);
	fclose(out);
}

static void tracer_by_queue_pair(void)
{
	tracer(FLEXIO_TRACER_TRANSPORT_QP);
}

static void tracer_by_window(void)
{
	tracer(FLEXIO_TRACER_TRANSPORT_WINDOW);
}

static void tracer_of_many(void)
{
	FILE *out = capture_open();
	struct flexio_msg_stream *stream = make_tracer(FLEXIO_TRACER_TRANSPORT_QP, out);

	call_from_threads(trace_many, WRITERS, 0, LINES);
	destroy(stream);
	check_lines(capture_lines(out, WRITERS * LINES));
	fclose(out);
}

const struct test_case tracer_cases[] = {
	{"tracer with formats 0 to 6 N260-262", tracer_by_queue_pair},
	{"tracer by the window transport N264", tracer_by_window},
	{"tracer of 8 threads loses nothing N263", tracer_of_many},
	{0},
};
