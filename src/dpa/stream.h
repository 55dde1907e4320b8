/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of a DPA process: device threads write messages and trace records, the host reads
 * them.
 *
 * A stream is a ring of whole entries. What happens when it is full is a matter of its mode: in
 * ASYNC the oldest entries are lost, since nobody reads before the program flushes; in all others
 * the writer waits for the host. Reading never splits an entry. Texts of one thread come in its
 * order, and no text has another's inside.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dpa/door.h"

/* Numbers of flexio_msg_dev_sync_mode. */
enum dpa_stream_mode {
	DPA_STREAM_SYNC,
	DPA_STREAM_ASYNC,
	DPA_STREAM_BATCH,  /* as SYNC, but the host is woken for several messages at a time */
	DPA_STREAM_TRACER, /* records; the host sees them by full buffers, or when they are sent */
};

/* Numbers of flexio_msg_dev_level. */
enum dpa_level {
	DPA_LEVEL_NO_PRINT,
	DPA_LEVEL_ALWAYS_PRINT,
	DPA_LEVEL_ERROR,
	DPA_LEVEL_WARN,
	DPA_LEVEL_INFO,
	DPA_LEVEL_DEBUG,
};

/* Sizes of the buffer: a power of two in between. */
#define DPA_STREAM_BYTES_MIN DPA_MESSAGE_BYTES
#define DPA_STREAM_BYTES_MAX (64ull << 20)
/* What a reader must have room for: the longest entry. */
#define DPA_STREAM_READ_MIN DPA_MESSAGE_BYTES

struct dpa_stream_attr {
	uint32_t mode;	/* enum dpa_stream_mode */
	uint32_t level; /* enum dpa_level; not of the default stream, which has DPA_LEVEL_INFO */
	uint64_t bytes;
	bool only_default; /* it must become the default stream */
};

struct dpa_stream;

struct dpa_streams {
	pthread_mutex_t lock;
	struct dpa_stream *streams[DPA_STREAMS];
	struct dpa_image_info
		*info; /* in the image: where device code looks for tracers; may be NULL */
	bool hurry;
};

void dpa_streams_init(struct dpa_streams *s);
/* Before there is a stream. */
void dpa_streams_show(struct dpa_streams *s, struct dpa_image_info *info);
/* Closes those that are there; their owners still put them. Nobody writes any more. */
void dpa_streams_end(struct dpa_streams *s);
/* When all of them have been put. */
void dpa_streams_free(struct dpa_streams *s);
/* While it is on, no writer waits for room: what finds none is lost. */
void dpa_streams_hurry(struct dpa_streams *s, bool on);

/*
 * Takes the lowest free number. 0 or negative errno: -EINVAL an attribute, -EMFILE all numbers are
 * taken, -EEXIST there is a default stream.
 */
int dpa_stream_create(struct dpa_streams *s, const struct dpa_stream_attr *attr,
		      struct dpa_stream **out) must_check;
/* Takes no more entries and gives its number back; what it holds can be read until
 * dpa_stream_put. */
void dpa_stream_close(struct dpa_stream *stream);
/* Another user of the stream, and one less; the last frees it, after it was closed. */
void dpa_stream_hold(struct dpa_stream *stream);
void dpa_stream_put(struct dpa_stream *stream);
uint32_t dpa_stream_number(const struct dpa_stream *stream);
/* -EPERM for the default stream, -EINVAL for what is no level of a stream. */
int dpa_stream_level(struct dpa_stream *stream, uint32_t level) must_check;

/*
 * As many whole entries as fit; room is at least DPA_STREAM_READ_MIN. Returns their bytes; 0: there
 * are none, and the caller does not want to wait; -EPIPE: there are none and there will be none.
 * *before, if it is not NULL: bytes that readers had before, so that several can keep the order.
 */
int64_t dpa_stream_read(struct dpa_stream *stream, void *to, size_t room, bool wait,
			uint64_t *before) must_check;
/* How many entries were lost because nobody read them. */
uint64_t dpa_stream_lost(struct dpa_stream *stream);

/*
 * What device threads do, by number of the stream; for a number that no stream has nothing happens.
 * A thread that waits for room goes on without, and its entry is lost, when *give_up (may be NULL)
 * is not 0.
 */
void dpa_streams_message(struct dpa_streams *s, uint32_t number, uint32_t level, const char *text,
			 uint32_t bytes, const _Atomic(uint32_t) *give_up);
void dpa_streams_trace(struct dpa_streams *s, uint32_t number, uint32_t level,
		       const struct dpa_trace_record *record, const _Atomic(uint32_t) *give_up);
/* 0: all records. */
void dpa_streams_trace_send(struct dpa_streams *s, uint32_t number, uint32_t records);
