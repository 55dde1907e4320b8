// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams of a process of the DPA: the general object, and the operations on a stream.
 *
 * A read that waits does so without the lock of the file, with a reference to the stream and to its
 * process.  The end of the object, of its process or of the file closes the stream, which ends the
 * wait.
 */
#include "driver/devx/dpa_stream.h"

#include <errno.h>
#include <stdatomic.h>

#include "dpa/dpa.h"
#include "dpa/stream.h"
#include "driver/devx/dpa.h"
#include "prm/cmd_dpa.h"

_Static_assert(DPA_STREAM_READ_BYTES >= DPA_STREAM_READ_MIN,
	       "a read has room for the longest message");

static void dpa_stream_free(struct devx_obj *obj)
{
	struct devx_dpa_stream *s = container_of(obj, struct devx_dpa_stream, obj);

	dpa_stream_close(s->stream);
	dpa_stream_put(s->stream);
	dpa_process_put(s->process);
}

static const struct devx_class devx_dpa_stream_class = {.free = dpa_stream_free};

int devx_create_dpa_stream(struct devx_call *c, struct devx_obj *obj)
{
	/* A counter, so that no stream gets the number of one that is closed and still read. */
	static _Atomic(uint32_t) serial;
	struct devx_dpa_stream *s = container_of(obj, struct devx_dpa_stream, obj);
	const struct dpa_stream_attr attr = {
		.mode = prm_get32(c->in, DPA_STREAM_MODE),
		.level = prm_get32(c->in, DPA_STREAM_LEVEL),
		.bytes = prm_get(c->in, DPA_STREAM_BUFFER),
		.only_default = prm_get32(c->in, DPA_STREAM_ONLY_DEFAULT),
	};
	struct devx_dpa_process *d;
	int ret = devx_dpa_process_find(c, prm_get32(c->in, DPA_STREAM_PROCESS), &d);

	if (ret < 0)
		return ret;
	if (dpa_process_state(d->process) == DPA_ENDED)
		return -ENOENT;
	ret = dpa_stream_create(dpa_process_streams(d->process), &attr, &s->stream);
	if (ret < 0)
		return ret;
	s->process = d->process;
	dpa_process_hold(s->process);
	devx_obj_init(obj, &devx_dpa_stream_class,
		      atomic_fetch_add(&serial, 1) << 8 | dpa_stream_number(s->stream));
	devx_obj_uses(obj, &d->obj.uobj);
	return 0;
}

/* Finds the stream that a command names, which has to be one of the process. */
static int dpa_stream_of(struct devx_call *c, const struct dpa_process *p, struct dpa_stream **out)
{
	struct uobj *uobj =
		devx_find(c->file, &devx_dpa_stream_class, prm_get32(c->in, DPA_IN_STREAM));
	struct devx_dpa_stream *s;

	if (!uobj)
		return -ENOENT;
	s = container_of(uobj, struct devx_dpa_stream, obj.uobj);
	if (s->process != p)
		return -EINVAL;
	*out = s->stream;
	return 0;
}

int devx_dpa_stream_read(struct devx_call *c, struct dpa_process *p)
{
	bool wait = prm_get32(c->in, DPA_IN_WAIT);
	struct dpa_stream *stream;
	uint64_t before = 0;
	int64_t bytes;
	int ret;

	if (c->out_len < DPA_OUT_BYTES + DPA_STREAM_READ_BYTES)
		return -EINVAL;
	ret = dpa_stream_of(c, p, &stream);
	if (ret < 0)
		return ret;
	dpa_process_hold(p);
	dpa_stream_hold(stream);
	pthread_mutex_unlock(&c->file->lock);
	bytes = dpa_stream_read(stream, c->out + DPA_OUT_BYTES, c->out_len - DPA_OUT_BYTES, wait,
				&before);
	prm_set(c->out, DPA_OUT_LOST, dpa_stream_lost(stream));
	dpa_stream_put(stream);
	dpa_process_put(p);
	pthread_mutex_lock(&c->file->lock);
	prm_set(c->out, DPA_OUT_TEXT, bytes < 0 ? 0 : (uint64_t)bytes);
	prm_set(c->out, DPA_OUT_OVER, bytes < 0);
	prm_set(c->out, DPA_OUT_BEFORE, before);
	return 0;
}

int devx_dpa_stream_level(struct devx_call *c, struct dpa_process *p)
{
	struct dpa_stream *stream;
	int ret = dpa_stream_of(c, p, &stream);

	return ret < 0 ? ret : dpa_stream_level(stream, prm_get32(c->in, DPA_IN_LEVEL));
}

int devx_dpa_stream_close(struct devx_call *c, struct dpa_process *p)
{
	struct dpa_stream *stream;
	int ret = dpa_stream_of(c, p, &stream);

	if (ret == 0)
		dpa_stream_close(stream);
	return ret;
}
