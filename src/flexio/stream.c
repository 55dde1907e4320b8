// SPDX-License-Identifier: BSD-2-Clause
/*
 * Message streams.  The device holds what device code says.  For each stream a thread reads that
 * and writes it to the program's file; in asynchronous mode, flush does.  In the other modes, too,
 * flush writes what waits, except in the synchronous mode.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dpa/door.h"
#include "flexio/internal.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd.h"

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

/* How many bytes one read takes. */
#define READ_BYTES 16384u
/* The device cuts a buffer into pieces of this size, and a batch needs 8 of them. */
#define CHUNK_BYTES	(1u << FLEXIO_MSG_DEV_LOG_DATA_CHUNK_BSIZE)
#define BATCH_BYTES_MIN (8 * CHUNK_BYTES)
#define BYTES_MIN	2048u
#define BYTES_MAX	(64u << 20)

/* ---- what the device holds ---- */

/*
 * Reads from the device.  False: the stream is over.  *bytes: text behind the fixed part of out;
 * *before: all text before it.
 */
static bool stream_read(struct flexio_msg_stream *s, bool wait, uint8_t *out, size_t *bytes,
			uint64_t *before)
{
	uint8_t in[DPA_IN_FIXED] = {0};

	prm_set(in, DPA_IN_STREAM, s->number);
	prm_set(in, DPA_IN_WAIT, wait);
	if (flx_devx_op(s->object.process, DPA_OP_STREAM_READ, in, sizeof(in), out,
			DPA_OUT_BYTES + READ_BYTES))
		return false;
	*bytes = prm_get32(out, DPA_OUT_TEXT);
	*before = prm_get(out, DPA_OUT_BEFORE);
	s->lost = prm_get(out, DPA_OUT_LOST);
	return !prm_get32(out, DPA_OUT_OVER);
}

static void flx_trace_write(struct flexio_msg_stream *s, const uint8_t *records, size_t bytes);

static void stream_write(struct flexio_msg_stream *s, const uint8_t *text, size_t bytes)
{
	if (s->mode == FLEXIO_LOG_DEV_SYNC_MODE_TRACER)
		flx_trace_write(s, text, bytes);
	else
		(void)fwrite(text, 1, bytes, s->out);
	(void)fflush(s->out);
}

/* Waits until all earlier text is written, and then writes. */
static void stream_write_in_turn(struct flexio_msg_stream *s, const uint8_t *text, size_t bytes,
				 uint64_t before)
{
	pthread_mutex_lock(&s->turn);
	while (s->written != before)
		pthread_cond_wait(&s->turned, &s->turn);
	pthread_mutex_unlock(&s->turn);
	/* Nobody else has this turn, and writing to a file may take long. */
	if (bytes)
		stream_write(s, text, bytes);
	pthread_mutex_lock(&s->turn);
	s->written += bytes;
	pthread_cond_broadcast(&s->turned);
	pthread_mutex_unlock(&s->turn);
}

/* Reads and writes 'most' bytes, or all that there is.  wait: also all that there will be. */
static void stream_drain(struct flexio_msg_stream *s, bool wait, uint64_t most)
{
	uint8_t *out = malloc(DPA_OUT_BYTES + READ_BYTES);
	uint64_t done = 0, before;
	size_t bytes;

	if (!out)
		return;
	/* The last turn has no text: by then, text that another thread has read is written. */
	do {
		if (!stream_read(s, wait, out, &bytes, &before))
			break;
		stream_write_in_turn(s, out + DPA_OUT_BYTES, bytes, before);
		done += bytes;
	} while (bytes && done < most);
	free(out);
}

static void *stream_main(void *arg)
{
	stream_drain(arg, true, UINT64_MAX);
	return NULL;
}

/* ---- making ---- */

static bool bytes_are_valid(const flexio_msg_stream_attr_t *attr)
{
	size_t least =
		attr->sync_mode == FLEXIO_LOG_DEV_SYNC_MODE_BATCH ? BATCH_BYTES_MIN : BYTES_MIN;

	return attr->data_bsize >= least && attr->data_bsize <= BYTES_MAX &&
	       !(attr->data_bsize & (attr->data_bsize - 1));
}

static const char *attr_mistake(const flexio_msg_stream_attr_t *attr)
{
	if ((unsigned int)attr->sync_mode > FLEXIO_LOG_DEV_SYNC_MODE_TRACER)
		return "sync_mode: there is no such mode";
	if (!bytes_are_valid(attr))
		return attr->sync_mode == FLEXIO_LOG_DEV_SYNC_MODE_BATCH
			       ? "data_bsize: not a power of two from 4096 to 67108864"
			       : "data_bsize: not a power of two from 2048 to 67108864";
	if (attr->level > FLEXIO_MSG_DEV_DEBUG)
		return "level: there is no such level";
	if ((unsigned int)attr->mgmt_affinity.type > FLEXIO_AFFINITY_GROUP)
		return "mgmt_affinity.type: there is no such type";
	if (attr->mgmt_affinity.type == FLEXIO_AFFINITY_STRICT && attr->mgmt_affinity.id >= DPA_EUS)
		return "mgmt_affinity.id: there is no such unit";
	if (attr->sync_mode != FLEXIO_LOG_DEV_SYNC_MODE_TRACER)
		return NULL;
	if ((unsigned int)attr->tracer_mode > FLEXIO_TRACER_TRANSPORT_WINDOW)
		return "tracer_mode: there is no such transport";
	return attr->tracer_msg_formats ? NULL : "tracer_msg_formats is NULL";
}

static bool arguments_are_valid(struct flx_hold *hold, struct flexio_process *process,
				const flexio_msg_stream_attr_t *attr, const FILE *out,
				const char *function)
{
	const char *mistake;

	if (!flx_check(hold, process, FLX_PROCESS, function, "process") ||
	    !flx_given(attr, function, "stream_fattr") || !flx_given(out, function, "out"))
		return false;
	mistake = attr_mistake(attr);
	if (mistake)
		flx_fail(function, "stream_fattr->%s", mistake);
	return !mistake;
}

/* Makes the stream on the device.  No code of ours runs there, so the affinity decides nothing. */
static int stream_open(struct flexio_msg_stream *s, struct flexio_process *process,
		       const flexio_msg_stream_attr_t *attr, bool only_default)
{
	uint8_t in[DPA_STREAM_IN_BYTES] = {0};

	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_STREAM);
	prm_set(in, DPA_STREAM_PROCESS, process->number);
	prm_set(in, DPA_STREAM_MODE, attr->sync_mode);
	prm_set(in, DPA_STREAM_LEVEL, attr->level);
	prm_set(in, DPA_STREAM_ONLY_DEFAULT, only_default);
	prm_set(in, DPA_STREAM_BUFFER, attr->data_bsize);
	s->devx = flx_devx_create(process->ctx, in, sizeof(in), &s->number);
	return s->devx ? 0 : errno;
}

/* Starts the thread with all signals blocked, because the program's are for its own threads. */
static int stream_start(struct flexio_msg_stream *s, const char *name)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&s->thread, NULL, stream_main, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return err;
	s->has_thread = true;
	if (name && *name) {
		char shorter[16];

		snprintf(shorter, sizeof(shorter), "%s", name);
		(void)pthread_setname_np(s->thread, shorter);
	}
	return 0;
}

static void flx_trace_formats_free(struct flexio_msg_stream *s);

static void stream_free(struct flexio_msg_stream *s)
{
	if (s->devx)
		(void)mlx5dv_devx_obj_destroy(s->devx);
	flx_trace_formats_free(s);
	pthread_cond_destroy(&s->turned);
	pthread_mutex_destroy(&s->turn);
	free(s);
}

/* Writes what is still there before the stream goes. */
static void stream_destroy(struct flx_object *o)
{
	struct flexio_msg_stream *s = container_of(o, struct flexio_msg_stream, object);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};

	prm_set(in, DPA_IN_STREAM, s->number);
	(void)flx_devx_op(o->process, DPA_OP_STREAM_CLOSE, in, sizeof(in), out, sizeof(out));
	if (s->has_thread)
		(void)pthread_join(s->thread, NULL);
	else
		stream_drain(s, false, UINT64_MAX);
	if (s->lost)
		flx_log(FLEXIO_LOG_LVL_WARN,
			"message stream %u: %llu messages were lost, its buffer was full",
			flx_stream_id(s), (unsigned long long)s->lost);
	stream_free(s);
}

static bool flx_trace_formats_copy(struct flexio_msg_stream *s, char **formats);

static struct flexio_msg_stream *stream_new(struct flexio_process *process,
					    const flexio_msg_stream_attr_t *attr, FILE *out,
					    bool only_default, int *err)
{
	struct flexio_msg_stream *s = calloc(1, sizeof(*s));

	*err = ENOMEM;
	if (!s)
		return NULL;
	pthread_mutex_init(&s->turn, NULL);
	pthread_cond_init(&s->turned, NULL);
	s->object.process = process;
	s->object.destroy = stream_destroy;
	s->out = out;
	s->mode = attr->sync_mode;
	s->buffer_bytes = attr->data_bsize;
	if (s->mode == FLEXIO_LOG_DEV_SYNC_MODE_TRACER &&
	    !flx_trace_formats_copy(s, attr->tracer_msg_formats)) {
		stream_free(s);
		return NULL;
	}
	*err = stream_open(s, process, attr, only_default);
	if (!*err && s->mode != FLEXIO_LOG_DEV_SYNC_MODE_ASYNC)
		*err = stream_start(s, attr->stream_name);
	if (!*err)
		return s;
	stream_free(s);
	return NULL;
}

static flexio_status stream_create(struct flexio_process *process,
				   const flexio_msg_stream_attr_t *attr, FILE *out,
				   pthread_t *ppthread, bool only_default,
				   struct flexio_msg_stream **stream, const char *function)
{
	struct flexio_msg_stream *s;
	FLX_HOLD(hold);
	int err;

	if (!arguments_are_valid(&hold, process, attr, out, function))
		return FLEXIO_STATUS_FAILED;
	s = stream_new(process, attr, out, only_default, &err);
	if (!s)
		return flx_fail(
			function,
			"no stream: %s (there can be %u, and one of them is the default stream)",
			strerror(err), FLEXIO_MSG_DEV_MAX_STREAMS_AMOUNT);
	/* without a thread there is none to tell of */
	if (ppthread)
		*ppthread = s->thread;
	flx_object_add(&s->object, FLX_STREAM, process);
	*stream = s;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_msg_stream_create(struct flexio_process *process,
				       flexio_msg_stream_attr_t *stream_fattr, FILE *out,
				       pthread_t *ppthread, struct flexio_msg_stream **stream)
{
	if (!flx_given(stream, __func__, "stream"))
		return FLEXIO_STATUS_FAILED;
	*stream = NULL;
	return stream_create(process, stream_fattr, out, ppthread, false, stream, __func__);
}

/* ---- using ---- */

flexio_status flexio_msg_stream_destroy(struct flexio_msg_stream *stream)
{
	FLX_HOLD(hold);

	if (!flx_claim(&hold, stream, FLX_STREAM, __func__, "stream"))
		return FLEXIO_STATUS_FAILED;
	stream_destroy(&stream->object);
	return FLEXIO_STATUS_SUCCESS;
}

/*
 * Writes what is there now, but not what device code goes on to say, because a buffer holds no more
 * than that.  In synchronous mode the manual wants nothing done.
 */
static flexio_status stream_flush(struct flexio_msg_stream *s)
{
	if (s->mode != FLEXIO_LOG_DEV_SYNC_MODE_SYNC)
		stream_drain(s, false, s->buffer_bytes);
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_msg_stream_flush(struct flexio_msg_stream *stream)
{
	FLX_HOLD(hold);

	return flx_check(&hold, stream, FLX_STREAM, __func__, "stream") ? stream_flush(stream)
									: FLEXIO_STATUS_FAILED;
}

int flexio_msg_stream_get_id(struct flexio_msg_stream *stream)
{
	FLX_HOLD(hold);

	return flx_check(&hold, stream, FLX_STREAM, __func__, "stream") ? (int)flx_stream_id(stream)
									: -1;
}

flexio_status flexio_msg_stream_level_set(struct flexio_msg_stream *stream,
					  flexio_msg_dev_level level)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};
	int err;

	if (!flx_check(&hold, stream, FLX_STREAM, __func__, "stream"))
		return FLEXIO_STATUS_FAILED;
	if (flx_stream_id(stream) == FLEXIO_MSG_DEV_DEFAULT_STREAM_ID)
		return flx_fail(__func__,
				"stream: the level of the default stream cannot be changed");
	if (level > FLEXIO_MSG_DEV_DEBUG || level == FLEXIO_MSG_DEV_ALWAYS_PRINT)
		return flx_fail(__func__, "level: %u is no level of a stream", level);
	prm_set(in, DPA_IN_STREAM, stream->number);
	prm_set(in, DPA_IN_LEVEL, level);
	err = flx_devx_op(stream->object.process, DPA_OP_STREAM_LEVEL, in, sizeof(in), out,
			  sizeof(out));
	return err ? flx_refused(stream->object.process, __func__, err) : FLEXIO_STATUS_SUCCESS;
}

/* ---- the older way, which has no handles ---- */

/* NULL: it has logged why. */
static struct flexio_msg_stream *
default_stream(struct flx_hold *hold, struct flexio_process *process, const char *function)
{
	struct flx_object *o = NULL;

	if (!flx_check(hold, process, FLX_PROCESS, function, "process"))
		return NULL;
	flx_objects_lock();
	while ((o = flx_object_next(FLX_STREAM, o)))
		if (o->process == process &&
		    flx_stream_id(container_of(o, struct flexio_msg_stream, object)) ==
			    FLEXIO_MSG_DEV_DEFAULT_STREAM_ID)
			break;
	if (o)
		flx_hold_add(hold, o);
	flx_objects_unlock();
	if (o)
		return container_of(o, struct flexio_msg_stream, object);
	flx_fail(function, "process: it has no default stream");
	return NULL;
}

flexio_status flexio_log_dev_init(struct flexio_process *process,
				  flexio_msg_stream_attr_t *stream_fattr, FILE *out,
				  pthread_t *ppthread)
{
	struct flexio_msg_stream *stream;

	return stream_create(process, stream_fattr, out, ppthread, true, &stream, __func__);
}

flexio_status flexio_log_dev_flush(struct flexio_process *process)
{
	FLX_HOLD(hold);
	struct flexio_msg_stream *stream = default_stream(&hold, process, __func__);

	return stream ? stream_flush(stream) : FLEXIO_STATUS_FAILED;
}

flexio_status flexio_log_dev_destroy(struct flexio_process *process)
{
	struct flexio_msg_stream *stream;
	FLX_HOLD(look);
	FLX_HOLD(hold);

	stream = default_stream(&look, process, __func__);
	if (!stream)
		return FLEXIO_STATUS_FAILED;
	/* The function that destroys it must not hold it. */
	flx_hold_end(&look);
	if (!flx_claim(&hold, stream, FLX_STREAM, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	stream_destroy(&stream->object);
	return FLEXIO_STATUS_SUCCESS;
}

/* ---- tracers ---- */

/*
 * Trace records become text here: device code stores the number of a format and six numbers, and
 * the program has the formats.
 */

/* Copies the formats, because the program may free its own; false: no memory. */
static bool flx_trace_formats_copy(struct flexio_msg_stream *s, char **formats)
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

static void flx_trace_formats_free(struct flexio_msg_stream *s)
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

/* Writes trace records as text. */
static void flx_trace_write(struct flexio_msg_stream *s, const uint8_t *records, size_t bytes)
{
	struct dpa_trace_record r;

	for (; bytes >= sizeof(r); bytes -= sizeof(r), records += sizeof(r)) {
		memcpy(&r, records, sizeof(r));
		trace_write_one(s, &r);
	}
}
