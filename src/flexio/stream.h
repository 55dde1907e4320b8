/* SPDX-License-Identifier: BSD-2-Clause */
/* A message stream, for the files that make one. */
#pragma once

#include <stdatomic.h>

#include "flexio/internal.h"

struct flexio_msg_stream {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	uint32_t number; /* of the object; device code knows the lowest 8 bits */
	flexio_msg_dev_sync_mode mode;
	FILE *out;
	bool has_thread;
	pthread_t thread;
	uint64_t buffer_bytes;
	/* the stream's thread and flushers write in the order in which they have read */
	pthread_mutex_t turn;
	pthread_cond_t turned;
	uint64_t written;	/* how many bytes were read and written */
	_Atomic(uint64_t) lost; /* messages that were lost, as of the last read */
	/* a tracer's, by the number of the format */
	char **formats;
	uint32_t format_count;
};

static inline uint32_t flx_stream_id(const struct flexio_msg_stream *s)
{
	return s->number & 0xff;
}

/* Copies the formats, because the program may free its own; false: no memory. */
bool flx_trace_formats_copy(struct flexio_msg_stream *s, char **formats);
void flx_trace_formats_free(struct flexio_msg_stream *s);
/* Writes trace records as text. */
void flx_trace_write(struct flexio_msg_stream *s, const uint8_t *records, size_t bytes);
