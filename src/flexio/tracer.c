// SPDX-License-Identifier: BSD-2-Clause
/*
 * Trace records become text here: device code stores the number of a format and six numbers, and
 * the program has the formats.
 */
#include <stdlib.h>
#include <string.h>

#include "dpa/door.h"
#include "flexio/stream.h"

bool flx_trace_formats_copy(struct flexio_msg_stream *s, char **formats)
{
	uint32_t count = 0;

	while (formats[count])
		count++;
	s->formats = calloc(count + 1, sizeof(*s->formats));
	if (!s->formats)
		return false;
	for (; s->format_count < count; s->format_count++) {
		s->formats[s->format_count] = strdup(formats[s->format_count]);
		if (!s->formats[s->format_count])
			return false;
	}
	return true;
}

void flx_trace_formats_free(struct flexio_msg_stream *s)
{
	for (uint32_t i = 0; i < s->format_count; i++)
		free(s->formats[i]);
	free(s->formats);
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* The format is the program's own and may ask for what it likes: six arguments are there. */
static void trace_write_one(struct flexio_msg_stream *s, const struct dpa_trace_record *r)
{
	const uint64_t *a = r->args;

	if (r->format_id < s->format_count)
		fprintf(s->out, s->formats[r->format_id], a[0], a[1], a[2], a[3], a[4], a[5]);
	else
		flx_log(FLEXIO_LOG_LVL_WARN, "message stream %u: a trace names format %u of %u",
			flx_stream_id(s), r->format_id, s->format_count);
}

void flx_trace_write(struct flexio_msg_stream *s, const uint8_t *records, size_t bytes)
{
	struct dpa_trace_record r;

	for (; bytes >= sizeof(r); bytes -= sizeof(r), records += sizeof(r)) {
		memcpy(&r, records, sizeof(r));
		trace_write_one(s, &r);
	}
}
