// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages and traces.  This formats a message into the thread's stack and hands it over as a
 * whole: so messages of several threads never mix, and a wild pointer in the arguments faults
 * before anything is taken or locked.
 */
#include "dpa/device/image.h"

#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_perf.h>
#include <libflexio-dev/flexio_dev_tracer.h>

/* Most messages are short, and stacks of device threads are not large. */
#define MESSAGE_SHORT 256

static void message_give(uint32_t stream, uint32_t level, const char *text, int length, size_t room)
{
	/* a message without text says nothing, and one that is too long loses its end */
	if (length > 0)
		image_door()->message(stream, level, text,
				      (size_t)length < room ? (uint32_t)length
							    : (uint32_t)(room - 1));
}

static __attribute__((noinline)) int message_long(uint32_t stream, uint32_t level,
						  const char *format, va_list ap)
{
	char text[DPA_MESSAGE_BYTES + 1];
	int length = dpa_format(text, sizeof(text), format, ap);

	message_give(stream, level, text, length, sizeof(text));
	return length;
}

int message_format(uint32_t stream, uint32_t level, const char *format, va_list ap)
{
	char text[MESSAGE_SHORT];
	va_list again;
	int length;

	va_copy(again, ap);
	length = dpa_format(text, sizeof(text), format, ap);
	if (length < MESSAGE_SHORT)
		message_give(stream, level, text, length, sizeof(text));
	else
		length = message_long(stream, level, format, again);
	va_end(again);
	return length;
}

int flexio_dev_msg(int stream_id, flexio_msg_dev_level level, const char *format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	/* a number that no stream can have stays as it is: the runtime drops the message */
	length = message_format((uint32_t)stream_id, level, format, ap);
	va_end(ap);
	return length;
}

/* Sends the text as it is: this adds nothing, and percent signs mean nothing. */
static int message_puts(const char *text)
{
	size_t length = 0;

	for (;; length++) {
		dpa_check_read(text + length, 1);
		if (!text[length])
			break;
	}
	if (length)
		image_door()->message(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, FLEXIO_MSG_DEV_INFO, text,
				      length < DPA_MESSAGE_BYTES ? (uint32_t)length
								 : DPA_MESSAGE_BYTES);
	return (int)length;
}

int flexio_dev_puts(struct flexio_dev_thread_ctx *dtctx, char *str)
{
	thread_ctx_touch(dtctx);
	return message_puts(str);
}

/* The table that this reads is memory of the program, so the runtime decides once more. */
static int trace_wanted(uint32_t tracer_id, uint32_t level)
{
	uint64_t tracer;

	if (tracer_id >= DPA_STREAMS)
		return 0;
	tracer = __dpa_image_info.tracers[tracer_id];
	return tracer &&
	       ((const volatile struct dpa_tracer *)(uintptr_t)tracer)->valid_lvl >= level;
}

void flexio_dev_trace_6(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1, uint64_t arg2, uint64_t arg3, uint64_t arg4, uint64_t arg5)
{
	uint64_t args[DPA_TRACE_ARGS] = {arg0, arg1, arg2, arg3, arg4, arg5};

	if (trace_wanted(tracer_id, level))
		image_door()->trace(tracer_id, level, (uint32_t)format_id, args);
}

void flexio_dev_trace_5(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1, uint64_t arg2, uint64_t arg3, uint64_t arg4)
{
	flexio_dev_trace_6(tracer_id, level, format_id, arg0, arg1, arg2, arg3, arg4, 0);
}

void flexio_dev_trace_4(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1, uint64_t arg2, uint64_t arg3)
{
	flexio_dev_trace_6(tracer_id, level, format_id, arg0, arg1, arg2, arg3, 0, 0);
}

void flexio_dev_trace_3(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1, uint64_t arg2)
{
	flexio_dev_trace_6(tracer_id, level, format_id, arg0, arg1, arg2, 0, 0, 0);
}

void flexio_dev_trace_2(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1)
{
	flexio_dev_trace_6(tracer_id, level, format_id, arg0, arg1, 0, 0, 0, 0);
}

void flexio_dev_trace_1(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0)
{
	flexio_dev_trace_6(tracer_id, level, format_id, arg0, 0, 0, 0, 0, 0);
}

void flexio_dev_trace_0(uint8_t tracer_id, flexio_msg_dev_level level, int format_id)
{
	flexio_dev_trace_6(tracer_id, level, format_id, 0, 0, 0, 0, 0, 0);
}

void flexio_dev_tracer_flush(uint8_t tracer_id)
{
	image_door()->trace_send(tracer_id, 0);
}

void flexio_dev_tracer_notify_host(uint8_t tracer_id, uint32_t num_msg)
{
	if (num_msg)
		image_door()->trace_send(tracer_id, num_msg);
}

void flexio_dev_perf_print(struct flexio_dev_perf_data *pdata, const char *keyword)
{
	dpa_check_read(pdata, sizeof(*pdata));
	(void)flexio_dev_print("%s: instructions/cycles: %lu/%lu\n", keyword, pdata->insts,
			       pdata->cycles);
}

void flexio_dev_perf_measure_calibrate(void)
{
	FLEXIO_DEV_PERF_MEASURE(overhead)
	{
	}
}
