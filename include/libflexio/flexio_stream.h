/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message streams.  Included by flexio.h, which says what holds for every function.
 */
#ifndef _FLEXIO_STREAM_H_
#define _FLEXIO_STREAM_H_

#ifndef _FLEXIO_SDK_H_
#error "include <libflexio/flexio.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * flexio_msg_stream_create() - make a stream that carries messages of device code to a file.
 * @process: the process
 * @stream_fattr: attributes
 * @out: the file; it stays open until the stream is destroyed
 * @ppthread: receives the host thread that writes; NULL: it is not asked for.  The thread belongs
 *	to the stream
 * @stream: receives the stream
 *
 * The first stream of a process is the default stream: its number is
 * FLEXIO_MSG_DEV_DEFAULT_STREAM_ID and its level FLEXIO_MSG_DEV_INFO.
 */
flexio_status flexio_msg_stream_create(struct flexio_process *process,
				       flexio_msg_stream_attr_t *stream_fattr, FILE *out,
				       pthread_t *ppthread, struct flexio_msg_stream **stream);

/**
 * flexio_msg_stream_destroy() - write what a stream still holds, and free it.
 * @stream: the stream
 */
flexio_status flexio_msg_stream_destroy(struct flexio_msg_stream *stream);

/**
 * flexio_msg_stream_flush() - write what a stream holds to its file.
 * @stream: the stream; a synchronous one is left alone
 */
flexio_status flexio_msg_stream_flush(struct flexio_msg_stream *stream);

/**
 * flexio_msg_stream_get_id() - the number of a stream, for device code.
 * @stream: the stream
 *
 * Returns 0 to 254, or -1 on error.
 */
int flexio_msg_stream_get_id(struct flexio_msg_stream *stream);

/**
 * flexio_msg_stream_level_set() - set the level of a stream.
 * @stream: the stream; not the default one
 * @level: FLEXIO_MSG_DEV_NO_PRINT to FLEXIO_MSG_DEV_DEBUG without FLEXIO_MSG_DEV_ALWAYS_PRINT
 *
 * Messages that are on their way meanwhile may be shown by the old or the new level.
 */
flexio_status flexio_msg_stream_level_set(struct flexio_msg_stream *stream,
					  flexio_msg_dev_level level);

/**
 * flexio_log_dev_init() - make the default stream, in the older way, which gives no handle.
 * @process: the process; fails if it has a default stream
 * @stream_fattr: attributes
 * @out: the file; it stays open until the stream is destroyed
 * @ppthread: receives the host thread that writes; NULL: it is not asked for
 */
flexio_status flexio_log_dev_init(struct flexio_process *process,
				  flexio_msg_stream_attr_t *stream_fattr, FILE *out,
				  pthread_t *ppthread);

/**
 * flexio_log_dev_flush() - flexio_msg_stream_flush() of the default stream.
 * @process: the process
 */
flexio_status flexio_log_dev_flush(struct flexio_process *process);

/**
 * flexio_log_dev_destroy() - destroy the default stream.
 * @process: the process
 */
flexio_status flexio_log_dev_destroy(struct flexio_process *process);

#ifdef __cplusplus
}
#endif

#endif
