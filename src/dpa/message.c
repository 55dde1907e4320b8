// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages and records of device threads, on their way to the streams.
 *
 * This copies texts and arguments before it looks at a stream: they lie in the program's memory,
 * which may go, and code that holds a stream's lock must not fault.
 */
#include "dpa/process.h"
#include "usermem/usermem.h"

void dpa_message(struct dpa_thread *t, uint32_t stream, uint32_t level, const char *text,
		 uint32_t bytes)
{
	char copy[DPA_MESSAGE_BYTES];

	if (bytes <= sizeof(copy) && usermem_copy(copy, text, bytes))
		dpa_streams_message(&t->process->streams, stream, level, copy, bytes, &t->stop);
}

void dpa_trace(struct dpa_thread *t, uint32_t stream, uint32_t level, uint32_t format_id,
	       const uint64_t args[DPA_TRACE_ARGS])
{
	struct dpa_trace_record record = {.format_id = format_id};

	if (usermem_copy(record.args, args, sizeof(record.args)))
		dpa_streams_trace(&t->process->streams, stream, level, &record, &t->stop);
}

void dpa_trace_send(struct dpa_thread *t, uint32_t stream, uint32_t records)
{
	dpa_streams_trace_send(&t->process->streams, stream, records);
}

struct dpa_streams *dpa_process_streams(struct dpa_process *p)
{
	return &p->streams;
}
