// SPDX-License-Identifier: BSD-2-Clause
/*
 * Message streams: a thread of the host waits for what device code prints and writes it out at once.
 */
#include <stdlib.h>

#include "flexio/internal.h"

#define TEXT_BYTES 32768u

struct flexio_msg_stream {
	struct flx_object object;
	FILE *out;
	pthread_t thread;
};

static uint32_t stream_read(struct flexio_msg_stream *s, uint8_t *out, size_t out_bytes)
{
	uint8_t in[DPA_IN_FIXED] = {0};

	if (flx_devx_op(s->object.process, DPA_OP_TEXT, in, sizeof(in), out, out_bytes))
		return 0;
	return prm_get32(out, DPA_OUT_TEXT);
}

static void *stream_main(void *arg)
{
	struct flexio_msg_stream *s = arg;
	size_t out_bytes = DPA_OUT_BYTES + TEXT_BYTES;
	uint8_t *out = calloc(1, out_bytes);
	uint32_t n;

	while (out && (n = stream_read(s, out, out_bytes))) {
		fwrite(out + DPA_OUT_BYTES, 1, n, s->out);
		fflush(s->out);
	}
	free(out);
	return NULL;
}

static void stream_destroy(struct flx_object *o)
{
	struct flexio_msg_stream *s = container_of(o, struct flexio_msg_stream, object);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};

	(void)flx_devx_op(o->process, DPA_OP_TEXT_STOP, in, sizeof(in), out, sizeof(out));
	pthread_join(s->thread, NULL);
	flx_object_remove(o);
	if (o->process->default_stream == s)
		o->process->default_stream = NULL;
	free(s);
}

flexio_status flexio_msg_stream_create(struct flexio_process *process,
				       flexio_msg_stream_attr_t *stream_fattr, FILE *out,
				       pthread_t *ppthread, struct flexio_msg_stream **stream)
{
	struct flexio_msg_stream *s;

	if (!flx_given(stream, __func__, "stream"))
		return FLEXIO_STATUS_FAILED;
	*stream = NULL;
	if (!flx_check(process, FLX_PROCESS, __func__, "process") ||
	    !flx_given(stream_fattr, __func__, "stream_fattr") || !flx_given(out, __func__, "out"))
		return FLEXIO_STATUS_FAILED;
	if (process->default_stream)
		return flx_fail(__func__, "there is only the default stream yet");
	s = calloc(1, sizeof(*s));
	if (!s)
		return flx_fail(__func__, "no memory");
	s->out = out;
	s->object.process = process;
	s->object.destroy = stream_destroy;
	if (pthread_create(&s->thread, NULL, stream_main, s)) {
		free(s);
		return flx_fail(__func__, "no thread");
	}
	process->default_stream = s;
	if (ppthread)
		*ppthread = s->thread;
	flx_object_add(&s->object, FLX_STREAM, process);
	*stream = s;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_msg_stream_destroy(struct flexio_msg_stream *stream)
{
	if (!flx_check(stream, FLX_STREAM, __func__, "stream"))
		return FLEXIO_STATUS_FAILED;
	stream_destroy(&stream->object);
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_msg_stream_flush(struct flexio_msg_stream *stream)
{
	return flx_check(stream, FLX_STREAM, __func__, "stream") ? FLEXIO_STATUS_SUCCESS
								 : FLEXIO_STATUS_FAILED;
}

int flexio_msg_stream_get_id(struct flexio_msg_stream *stream)
{
	return flx_check(stream, FLX_STREAM, __func__, "stream") ? FLEXIO_MSG_DEV_DEFAULT_STREAM_ID
								 : -1;
}
