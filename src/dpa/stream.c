// SPDX-License-Identifier: BSD-2-Clause
#include "dpa/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"

/* The length in front of each entry. */
#define ENTRY_HEAD sizeof(uint16_t)
/* In BATCH the host wakes after so many messages, or when the first has waited so long. */
#define BATCH_ENTRIES 8u
#define BATCH_WAIT_NS 10000000
/* How often a waiting writer looks whether it is to give up. */
#define GIVE_UP_NS 50000000

/*
 * Positions count bytes from the stream's beginning and never go back: tail <= ready <= head <=
 * tail + room. What is between ready and head (of a tracer only) is not yet for the host.
 */
struct dpa_stream {
	struct dpa_streams *streams;
	uint32_t number;
	uint32_t mode;
	uint32_t level;
	uint32_t references;
	bool closed;
	uint64_t head, ready, tail;
	uint64_t given;		 /* bytes that readers have got */
	uint64_t entries;	 /* how many lie between tail and head */
	uint64_t held;		 /* how many lie between ready and head */
	uint64_t buffer_entries; /* a tracer's: how many fill a buffer */
	uint64_t lost;
	pthread_cond_t filled, emptied;
	size_t room;
	uint8_t ring[];
};

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* Waits on the condition.  False: that time has passed. */
static bool cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, long ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ns;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return pthread_cond_timedwait(cond, lock, &until) == 0;
}

/* ---- the ring ---- */

static void ring_copy_in(struct dpa_stream *stream, uint64_t at, const void *from, size_t bytes)
{
	size_t offset = at % stream->room;
	size_t first = bytes < stream->room - offset ? bytes : stream->room - offset;

	memcpy(stream->ring + offset, from, first);
	memcpy(stream->ring, (const uint8_t *)from + first, bytes - first);
}

static void ring_copy_out(const struct dpa_stream *stream, uint64_t at, void *to, size_t bytes)
{
	size_t offset = at % stream->room;
	size_t first = bytes < stream->room - offset ? bytes : stream->room - offset;

	memcpy(to, stream->ring + offset, first);
	memcpy((uint8_t *)to + first, stream->ring, bytes - first);
}

static uint16_t ring_entry_bytes(const struct dpa_stream *stream, uint64_t at)
{
	uint16_t bytes;

	ring_copy_out(stream, at, &bytes, sizeof(bytes));
	return bytes;
}

static bool ring_fits(const struct dpa_stream *stream, size_t bytes)
{
	return stream->head + ENTRY_HEAD + bytes - stream->tail <= stream->room;
}

static void ring_append(struct dpa_stream *stream, const void *entry, uint16_t bytes)
{
	ring_copy_in(stream, stream->head, &bytes, sizeof(bytes));
	ring_copy_in(stream, stream->head + ENTRY_HEAD, entry, bytes);
	stream->head += ENTRY_HEAD + bytes;
	stream->entries++;
}

static void ring_skip(struct dpa_stream *stream)
{
	stream->tail += ENTRY_HEAD + ring_entry_bytes(stream, stream->tail);
	stream->entries--;
}

/* ---- making and ending ---- */

static bool attr_is_valid(const struct dpa_stream_attr *attr)
{
	return attr->mode <= DPA_STREAM_TRACER && attr->bytes >= DPA_STREAM_BYTES_MIN &&
	       attr->bytes <= DPA_STREAM_BYTES_MAX && !(attr->bytes & (attr->bytes - 1)) &&
	       attr->level <= DPA_LEVEL_DEBUG;
}

/*
 * Returns the bytes of the ring.  The heads of a text's entries count, so a buffer has room for its
 * longest message and a bit.  A tracer has two buffers: one fills while the host reads the other.
 */
static size_t attr_room(const struct dpa_stream_attr *attr)
{
	if (attr->mode == DPA_STREAM_TRACER)
		return 2 * (attr->bytes / sizeof(struct dpa_trace_record)) *
		       (sizeof(struct dpa_trace_record) + ENTRY_HEAD);
	return attr->bytes + ENTRY_HEAD;
}

static struct dpa_stream *stream_new(struct dpa_streams *s, const struct dpa_stream_attr *attr)
{
	size_t room = attr_room(attr);
	struct dpa_stream *stream = calloc(1, sizeof(*stream) + room);

	if (!stream)
		return NULL;
	stream->streams = s;
	stream->mode = attr->mode;
	stream->level = attr->level;
	stream->references = 1;
	stream->room = room;
	stream->buffer_entries = attr->bytes / sizeof(struct dpa_trace_record);
	cond_init(&stream->filled);
	cond_init(&stream->emptied);
	return stream;
}

static void stream_free(struct dpa_stream *stream)
{
	pthread_cond_destroy(&stream->filled);
	pthread_cond_destroy(&stream->emptied);
	free(stream);
}

void dpa_streams_init(struct dpa_streams *s)
{
	*s = (struct dpa_streams){0};
	pthread_mutex_init(&s->lock, NULL);
}

void dpa_streams_show(struct dpa_streams *s, struct dpa_image_info *info)
{
	s->info = info;
}

void dpa_streams_free(struct dpa_streams *s)
{
	pthread_mutex_destroy(&s->lock);
}

/* Shows the tracers to device code; the lock is held. */
static void tracer_show(const struct dpa_stream *stream)
{
	struct dpa_image_info *info = stream->streams->info;
	struct dpa_tracer *tracer;

	if (!info || stream->mode != DPA_STREAM_TRACER)
		return;
	tracer = &info->tracer[stream->number];
	*tracer = (struct dpa_tracer){
		.valid_lvl = (uint8_t)stream->level,
		.log_num_buf_msgs = (uint16_t)__builtin_ctzll(stream->buffer_entries),
		.max_entries_per_buf = (uint32_t)stream->buffer_entries,
		.buf_mask = 1,
	};
	info->tracers[stream->number] = (uintptr_t)tracer;
}

static void tracer_hide(const struct dpa_stream *stream)
{
	struct dpa_image_info *info = stream->streams->info;

	if (info && stream->mode == DPA_STREAM_TRACER)
		info->tracers[stream->number] = 0;
}

/* The lock is held. */
static int stream_publish(struct dpa_stream *stream, bool only_default)
{
	struct dpa_streams *s = stream->streams;
	uint32_t number = 0;

	while (number < DPA_STREAMS && s->streams[number])
		number++;
	if (number == DPA_STREAMS)
		return -EMFILE;
	if (only_default && number)
		return -EEXIST;
	stream->number = number;
	if (!number)
		stream->level = DPA_LEVEL_INFO;
	s->streams[number] = stream;
	tracer_show(stream);
	return 0;
}

int dpa_stream_create(struct dpa_streams *s, const struct dpa_stream_attr *attr,
		      struct dpa_stream **out)
{
	struct dpa_stream *stream;
	int ret;

	if (!attr_is_valid(attr))
		return -EINVAL;
	stream = stream_new(s, attr);
	if (!stream)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	ret = stream_publish(stream, attr->only_default);
	pthread_mutex_unlock(&s->lock);
	if (ret < 0)
		stream_free(stream);
	else
		*out = stream;
	return ret;
}

/* Shows all records to the host; the lock is held. */
static void stream_show_all(struct dpa_stream *stream)
{
	stream->ready = stream->head;
	stream->held = 0;
}

/* The lock is held. */
static void stream_close(struct dpa_stream *stream)
{
	if (stream->closed)
		return;
	stream->closed = true;
	tracer_hide(stream);
	stream->streams->streams[stream->number] = NULL;
	stream_show_all(stream);
	pthread_cond_broadcast(&stream->filled);
	pthread_cond_broadcast(&stream->emptied);
}

void dpa_stream_close(struct dpa_stream *stream)
{
	pthread_mutex_t *lock = &stream->streams->lock;

	pthread_mutex_lock(lock);
	stream_close(stream);
	pthread_mutex_unlock(lock);
}

void dpa_streams_end(struct dpa_streams *s)
{
	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < DPA_STREAMS; i++)
		if (s->streams[i])
			stream_close(s->streams[i]);
	pthread_mutex_unlock(&s->lock);
}

void dpa_streams_hurry(struct dpa_streams *s, bool on)
{
	pthread_mutex_lock(&s->lock);
	s->hurry = on;
	for (uint32_t i = 0; on && i < DPA_STREAMS; i++)
		if (s->streams[i])
			pthread_cond_broadcast(&s->streams[i]->emptied);
	pthread_mutex_unlock(&s->lock);
}

void dpa_stream_hold(struct dpa_stream *stream)
{
	pthread_mutex_t *lock = &stream->streams->lock;

	pthread_mutex_lock(lock);
	stream->references++;
	pthread_mutex_unlock(lock);
}

/* The lock is held.  True: nobody holds the stream any more. */
static bool stream_unhold(struct dpa_stream *stream)
{
	return --stream->references == 0;
}

void dpa_stream_put(struct dpa_stream *stream)
{
	pthread_mutex_t *lock = &stream->streams->lock;
	bool last;

	pthread_mutex_lock(lock);
	last = stream_unhold(stream);
	pthread_mutex_unlock(lock);
	if (last)
		stream_free(stream);
}

uint32_t dpa_stream_number(const struct dpa_stream *stream)
{
	return stream->number;
}

int dpa_stream_level(struct dpa_stream *stream, uint32_t level)
{
	pthread_mutex_t *lock = &stream->streams->lock;

	if (!stream->number)
		return -EPERM;
	if (level == DPA_LEVEL_ALWAYS_PRINT || level > DPA_LEVEL_DEBUG)
		return -EINVAL;
	pthread_mutex_lock(lock);
	stream->level = level;
	if (!stream->closed)
		tracer_show(stream);
	pthread_mutex_unlock(lock);
	return 0;
}

/* ---- the host's side ---- */

static bool stream_has_batch(const struct dpa_stream *stream)
{
	return stream->mode != DPA_STREAM_BATCH || stream->closed ||
	       stream->entries >= BATCH_ENTRIES ||
	       2 * (stream->head - stream->tail) >= stream->room;
}

/* Waits until there is something to read, or there will be nothing.  The lock is held. */
static void stream_wait_filled(struct dpa_stream *stream, pthread_mutex_t *lock)
{
	do {
		while (stream->ready == stream->tail && !stream->closed)
			pthread_cond_wait(&stream->filled, lock);
		/* the first of a batch waits for the others, but not for ever */
		while (!stream_has_batch(stream))
			if (!cond_wait_for(&stream->filled, lock, BATCH_WAIT_NS))
				break;
		/* another reader may have come first */
	} while (stream->ready == stream->tail && !stream->closed);
}

/* The lock is held. */
static size_t stream_take(struct dpa_stream *stream, uint8_t *to, size_t room)
{
	size_t taken = 0;

	while (stream->tail != stream->ready) {
		uint16_t bytes = ring_entry_bytes(stream, stream->tail);

		if (taken + bytes > room)
			break;
		ring_copy_out(stream, stream->tail + ENTRY_HEAD, to + taken, bytes);
		ring_skip(stream);
		taken += bytes;
	}
	return taken;
}

int64_t dpa_stream_read(struct dpa_stream *stream, void *to, size_t room, bool wait,
			uint64_t *before)
{
	pthread_mutex_t *lock = &stream->streams->lock;
	int64_t ret = 0;

	pthread_mutex_lock(lock);
	stream->references++;
	if (wait)
		stream_wait_filled(stream, lock);
	if (before)
		*before = stream->given;
	ret = (int64_t)stream_take(stream, to, room);
	stream->given += (uint64_t)ret;
	if (ret)
		pthread_cond_broadcast(&stream->emptied);
	else if (stream->closed)
		ret = -EPIPE;
	/* others hold it still, because a reader does not own it */
	stream->references--;
	pthread_mutex_unlock(lock);
	return ret;
}

uint64_t dpa_stream_lost(struct dpa_stream *stream)
{
	pthread_mutex_t *lock = &stream->streams->lock;
	uint64_t lost;

	pthread_mutex_lock(lock);
	lost = stream->lost;
	pthread_mutex_unlock(lock);
	return lost;
}

/* ---- the device's side ---- */

static bool level_is_shown(uint32_t level, uint32_t stream_level)
{
	if (level == DPA_LEVEL_ALWAYS_PRINT)
		return true;
	return level != DPA_LEVEL_NO_PRINT && level <= stream_level;
}

/* Makes room.  The lock is held, and given back meanwhile.  False: the entry is lost. */
static bool stream_make_room(struct dpa_stream *stream, size_t bytes,
			     const _Atomic(uint32_t) *give_up)
{
	while (!ring_fits(stream, bytes)) {
		if (stream->mode == DPA_STREAM_ASYNC) {
			ring_skip(stream);
			stream->lost++;
			continue;
		}
		if (stream->closed || stream->streams->hurry || (give_up && atomic_load(give_up)))
			return false;
		cond_wait_for(&stream->emptied, &stream->streams->lock, GIVE_UP_NS);
	}
	return !stream->closed;
}

/* Shows the host what is new, but not the records of a tracer's buffer that is not full.  The lock
 * is held. */
static void stream_show(struct dpa_stream *stream)
{
	if (stream->mode == DPA_STREAM_TRACER && ++stream->held < stream->buffer_entries)
		return;
	stream_show_all(stream);
	/* a batch that is not complete wakes the host only from a sleep without a limit */
	if (stream->entries == 1 || stream_has_batch(stream))
		pthread_cond_signal(&stream->filled);
}

/* The lock is held, and given back while there is no room. */
static void stream_write(struct dpa_stream *stream, const void *entry, uint16_t bytes,
			 const _Atomic(uint32_t) *give_up)
{
	stream->references++;
	if (stream_make_room(stream, bytes, give_up)) {
		ring_append(stream, entry, bytes);
		stream_show(stream);
	} else {
		stream->lost++;
	}
	if (stream_unhold(stream))
		stream_free(stream);
}

static void streams_message_to(struct dpa_streams *s, uint32_t number, uint32_t level,
			       const char *text, uint16_t bytes, const _Atomic(uint32_t) *give_up)
{
	struct dpa_stream *stream = s->streams[number];

	if (stream && stream->mode != DPA_STREAM_TRACER && level_is_shown(level, stream->level))
		stream_write(stream, text, bytes, give_up);
}

void dpa_streams_message(struct dpa_streams *s, uint32_t number, uint32_t level, const char *text,
			 uint32_t bytes, const _Atomic(uint32_t) *give_up)
{
	uint16_t length = (uint16_t)(bytes < DPA_MESSAGE_BYTES ? bytes : DPA_MESSAGE_BYTES);
	bool all = number == DPA_STREAM_BROADCAST;

	if (!all && number >= DPA_STREAMS)
		return;
	pthread_mutex_lock(&s->lock);
	for (uint32_t i = all ? 0 : number; i < (all ? DPA_STREAMS : number + 1); i++)
		streams_message_to(s, i, level, text, length, give_up);
	pthread_mutex_unlock(&s->lock);
}

/* The lock is held. */
static struct dpa_stream *streams_tracer(struct dpa_streams *s, uint32_t number)
{
	struct dpa_stream *stream = number < DPA_STREAMS ? s->streams[number] : NULL;

	return stream && stream->mode == DPA_STREAM_TRACER ? stream : NULL;
}

void dpa_streams_trace(struct dpa_streams *s, uint32_t number, uint32_t level,
		       const struct dpa_trace_record *record, const _Atomic(uint32_t) *give_up)
{
	struct dpa_stream *stream;

	pthread_mutex_lock(&s->lock);
	stream = streams_tracer(s, number);
	if (stream && level_is_shown(level, stream->level))
		stream_write(stream, record, sizeof(*record), give_up);
	pthread_mutex_unlock(&s->lock);
}

/* Shows the next `records` records that are held, up to the end of the last.  All have the same
 * length. */
static void tracer_show_some(struct dpa_stream *stream, uint64_t records)
{
	uint64_t shown = records && records < stream->held ? records : stream->held;

	stream->ready += shown * (ENTRY_HEAD + sizeof(struct dpa_trace_record));
	stream->held -= shown;
}

void dpa_streams_trace_send(struct dpa_streams *s, uint32_t number, uint32_t records)
{
	struct dpa_stream *stream;

	pthread_mutex_lock(&s->lock);
	stream = streams_tracer(s, number);
	if (stream && stream->held) {
		tracer_show_some(stream, records);
		pthread_cond_signal(&stream->filled);
	}
	pthread_mutex_unlock(&s->lock);
}
