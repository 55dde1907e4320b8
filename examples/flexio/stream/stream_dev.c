// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: it says things. */
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_tracer.h>

#include "stream.h"

/* The default stream needs no number. */
__dpa_rpc__ uint64_t greet(void)
{
	return (uint64_t)flexio_dev_print("the DPA says: hello\n");
}

__dpa_rpc__ uint64_t count(uint64_t stream, uint64_t messages)
{
	for (uint64_t i = 1; i <= messages; i++)
		flexio_dev_msg((int)stream, FLEXIO_MSG_DEV_INFO, "%lu of %lu\n", i, messages);
	return messages;
}

/* One message of each level: the stream's own level decides which are shown. */
__dpa_rpc__ uint64_t levels(uint64_t stream)
{
	flexio_dev_msg_err((int)stream, "error ");
	flexio_dev_msg_warn((int)stream, "warning ");
	flexio_dev_msg_info((int)stream, "information ");
	flexio_dev_msg_dbg((int)stream, "detail ");
	return 0;
}

/* A record has a number of a format and up to six arguments.  It costs less than a message, because
 * the text is made of it on the host. */
__dpa_rpc__ uint64_t trace_squares(uint64_t stream, uint64_t numbers)
{
	uint8_t tracer = (uint8_t)stream;

	flexio_dev_trace_1(tracer, FLEXIO_MSG_DEV_INFO, TRACE_BEGIN, numbers);
	for (uint64_t i = 1; i <= numbers; i++) {
		flexio_dev_trace_1(tracer, FLEXIO_MSG_DEV_DEBUG, TRACE_DETAIL, i);
		flexio_dev_trace_2(tracer, FLEXIO_MSG_DEV_INFO, TRACE_SQUARE, i, i * i);
	}
	/* What does not fill a buffer stays on the DPA otherwise. */
	flexio_dev_tracer_flush(tracer);
	return numbers;
}
