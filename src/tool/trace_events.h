/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes what a capture's records say as trace events: the JSON of Chrome's about:tracing, which
 * ui.perfetto.dev opens ("Trace Event Format").  Programs are processes; queue pairs, completion
 * queues, ports and threads of the DPA are their threads; a work request is an asynchronous slice
 * from its post to its completion.  Nothing that a record says is believed: numbers name places in
 * bounded tables, and texts are escaped.
 */
#pragma once

#include <stdio.h>

#include "tool/capture_reader.h"

struct trace_events;
struct traced_program;

/* Errors of the stream stay in it (ferror).  NULL: no memory. */
struct trace_events *trace_events_open(FILE *out, struct view *v, uint64_t begun_ns);
/* Ends what is still open, and the array. */
void trace_events_end(struct trace_events *e);
void trace_events_free(struct trace_events *e);

/* A process takes part.  NULL: no memory. */
struct traced_program *trace_events_program(struct trace_events *e,
					    const struct msg_capture_ring *ring);
/* The process has ended. */
void trace_events_ended(struct trace_events *e, struct traced_program *p, uint64_t ns);

/* Checks a record, and reduces it to what trace_events_write needs: room has TRACE_EVENT_BYTES.  The
 * number of bytes; 0: it is not readable. */
#define TRACE_EVENT_BYTES 512u
uint32_t trace_events_take(struct trace_events *e, const struct capture_head *head, uint32_t bytes,
			   void *room);
/* Writes the event of such a record; they come in the order of time. */
void trace_events_write(struct trace_events *e, struct traced_program *p,
			const struct capture_head *head, const void *bytes, uint32_t n);

/* Slices of work requests that were written: of send queues, of receives. */
struct trace_counts {
	uint64_t sends, receives, events;
};
struct trace_counts trace_events_counts(const struct trace_events *e);
