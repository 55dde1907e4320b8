/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of a DPA process: device threads write messages and trace records, the host reads
 * them.
 *
 * A stream is a ring of whole entries.  Its mode says what happens when it is full: in ASYNC the
 * oldest entries are lost, because nobody reads before the program flushes; in all others the
 * writer waits for the host.  Reading never splits an entry.  Texts of one thread come in its
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
	DPA_STREAM_TRACER, /* records; the host sees full buffers, or what is sent */
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

/* Sizes of the buffer, which are powers of two. */
#define DPA_STREAM_BYTES_MIN DPA_MESSAGE_BYTES
#define DPA_STREAM_BYTES_MAX (64ull << 20)
/* The room that a reader must have: for the longest entry. */
#define DPA_STREAM_READ_MIN DPA_MESSAGE_BYTES

struct dpa_stream_attr {
	uint32_t mode;	/* enum dpa_stream_mode */
	uint32_t level; /* enum dpa_level; the default stream has DPA_LEVEL_INFO */
	uint64_t bytes;
	bool only_default; /* it must become the default stream */
};

struct dpa_stream;

struct dpa_streams {
	pthread_mutex_t lock;
	struct dpa_stream *streams[DPA_STREAMS];
	struct dpa_image_info
		*info; /* in the image, for device code that looks for tracers; or NULL */
	bool hurry;
};

void dpa_streams_init(struct dpa_streams *s);
/* Says where device code looks for tracers; called before there is a stream. */
void dpa_streams_show(struct dpa_streams *s, struct dpa_image_info *info);
/* Closes the streams that are there, which their owners still put.  Nobody writes any more. */
void dpa_streams_end(struct dpa_streams *s);
/* Called when all streams have been put. */
void dpa_streams_free(struct dpa_streams *s);
/* While it is on, no writer waits for room: an entry that finds none is lost. */
void dpa_streams_hurry(struct dpa_streams *s, bool on);

/*
 * Takes the lowest free number.  0 or a negative errno: -EINVAL: a wrong attribute; -EMFILE: all
 * numbers are taken; -EEXIST: there is a default stream.
 */
int dpa_stream_create(struct dpa_streams *s, const struct dpa_stream_attr *attr,
		      struct dpa_stream **out) must_check;
/* The stream takes no more entries and gives its number back; readers can read what it holds until
 * dpa_stream_put. */
void dpa_stream_close(struct dpa_stream *stream);
/* Adds a user of the stream, or takes one away; the last one frees it, after it was closed. */
void dpa_stream_hold(struct dpa_stream *stream);
void dpa_stream_put(struct dpa_stream *stream);
uint32_t dpa_stream_number(const struct dpa_stream *stream);
/* -EPERM for the default stream, -EINVAL if it is not a level of a stream. */
int dpa_stream_level(struct dpa_stream *stream, uint32_t level) must_check;

/*
 * Reads as many whole entries as fit; room is at least DPA_STREAM_READ_MIN.  Returns their bytes;
 * 0: there are none, and the caller does not want to wait; -EPIPE: there are none and there will be
 * none.  *before, if before is not NULL: bytes that readers got earlier, so that several readers
 * can keep the order.
 */
int64_t dpa_stream_read(struct dpa_stream *stream, void *to, size_t room, bool wait,
			uint64_t *before) must_check;
/* Returns how many entries were lost because nobody read them. */
uint64_t dpa_stream_lost(struct dpa_stream *stream);

/*
 * What device threads do, by the number of the stream; a number that no stream has does nothing.
 * When *give_up (give_up may be NULL) is not 0, a thread that waits for room goes on, and its entry
 * is lost.
 */
void dpa_streams_message(struct dpa_streams *s, uint32_t number, uint32_t level, const char *text,
			 uint32_t bytes, const _Atomic(uint32_t) *give_up);
void dpa_streams_trace(struct dpa_streams *s, uint32_t number, uint32_t level,
		       const struct dpa_trace_record *record, const _Atomic(uint32_t) *give_up);
/* records 0: sends all. */
void dpa_streams_trace_send(struct dpa_streams *s, uint32_t number, uint32_t records);
