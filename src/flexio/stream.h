/* SPDX-License-Identifier: BSD-2-Clause */
/* A message stream, for the files that make one. */
#pragma once

#include <stdatomic.h>

#include "flexio/internal.h"

struct flexio_msg_stream {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	uint32_t number; /* of the object; the lowest 8 bits are what device code knows */
	flexio_msg_dev_sync_mode mode;
	FILE *out;
	bool has_thread;
	pthread_t thread;
	uint64_t buffer_bytes;
	/* its thread and who flushes write in the order in which they have read */
	pthread_mutex_t turn;
	pthread_cond_t turned;
	uint64_t written;	/* bytes that have been read and written */
	_Atomic(uint64_t) lost; /* messages, as of the last read */
	/* of a tracer; by the number of the format */
	char **formats;
	uint32_t format_count;
};

static inline uint32_t flx_stream_id(const struct flexio_msg_stream *s)
{
	return s->number & 0xff;
}

/* The program may free its own; false: no memory. */
bool flx_trace_formats_copy(struct flexio_msg_stream *s, char **formats);
void flx_trace_formats_free(struct flexio_msg_stream *s);
/* Writes trace records as text. */
void flx_trace_write(struct flexio_msg_stream *s, const uint8_t *records, size_t bytes);
