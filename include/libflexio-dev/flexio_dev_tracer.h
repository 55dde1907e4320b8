/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracer: records of a format number and up to six arguments, which the host makes text of.
 *
 * Source of names and types: DOCA Driver APIs 2.6.0 Reference Manual, sections 2.2, 3.7 and 3.28.
 *
 * The stream is one of the host's FLEXIO_LOG_DEV_SYNC_MODE_TRACER, the format number an index into
 * its tracer_msg_formats.  A record of a more detailed level than the stream's is dropped.
 */
#ifndef _FLEXIO_DEV_TRACER_H_
#define _FLEXIO_DEV_TRACER_H_

#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A record as it reaches the host, 64 bytes. */
struct flexio_tracer_msg {
	uint32_t format_id;
	uint32_t reserved[3];
	uint64_t arg0;
	uint64_t arg1;
	uint64_t arg2;
	uint64_t arg3;
	uint64_t arg4;
	uint64_t arg5;
} __attribute__((__packed__, __aligned__(8)));

/** State of one tracer.  For reading; only valid_lvl is meant for programs. */
struct flexio_tracer_streams_data {
	/** Most detailed level that is taken. */
	uint8_t valid_lvl;
	/** enum flexio_tracer_transport of the host. */
	uint8_t transport_mode;
	/** Logarithm of the records of a buffer. */
	uint16_t log_num_buf_msgs;
	/** Records in the current buffer. */
	uint32_t current_ix;
	uint32_t max_entries_per_buf;
	volatile uint32_t writing;
	uint16_t buf_idx;
	uint16_t buf_mask;
	struct flexio_tracer_msg *current_buffer;
	struct flexio_tracer_msg *buffer;
};

/** The tracers of a process, by the number of their stream; NULL where there is none. */
struct flexio_dev_process_tracer_ctx {
	struct flexio_tracer_streams_data *tracer_ctx[255];
};

/** The tracers of this process. */
extern struct flexio_dev_process_tracer_ctx *g_dev_p_tracer_ctx;

/**
 * flexio_dev_trace_0() - record without arguments.
 * @tracer_id: number of the stream
 * @level: level of the record
 * @format_id: number of the format
 *
 * May be called by any number of threads, but not during flexio_dev_tracer_flush() or
 * flexio_dev_tracer_notify_host().
 */
void flexio_dev_trace_0(uint8_t tracer_id, flexio_msg_dev_level level, int format_id);

/**
 * flexio_dev_trace_1() - record with one argument; see flexio_dev_trace_0().
 * @arg0: the argument
 */
void flexio_dev_trace_1(uint8_t tracer_id, flexio_msg_dev_level level, int format_id,
			uint64_t arg0);

/** flexio_dev_trace_2() - record with two arguments; see flexio_dev_trace_0(). */
void flexio_dev_trace_2(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1);

/** flexio_dev_trace_3() - record with three arguments; see flexio_dev_trace_0(). */
void flexio_dev_trace_3(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1, uint64_t arg2);

/** flexio_dev_trace_4() - record with four arguments; see flexio_dev_trace_0(). */
void flexio_dev_trace_4(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1, uint64_t arg2, uint64_t arg3);

/** flexio_dev_trace_5() - record with five arguments; see flexio_dev_trace_0(). */
void flexio_dev_trace_5(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1, uint64_t arg2, uint64_t arg3, uint64_t arg4);

/** flexio_dev_trace_6() - record with six arguments; see flexio_dev_trace_0(). */
void flexio_dev_trace_6(uint8_t tracer_id, flexio_msg_dev_level level, int format_id, uint64_t arg0,
			uint64_t arg1, uint64_t arg2, uint64_t arg3, uint64_t arg4, uint64_t arg5);

/**
 * flexio_dev_tracer_flush() - send a buffer that is not full to the host.
 * @tracer_id: number of the stream
 *
 * Not while another thread records or sends.  The host's destruction of the stream does it too.
 */
void flexio_dev_tracer_flush(uint8_t tracer_id);

/**
 * flexio_dev_tracer_notify_host() - send the current buffer to the host.
 * @tracer_id: number of the stream
 * @num_msg: records in it
 *
 * Not while another thread records or sends.
 */
void flexio_dev_tracer_notify_host(uint8_t tracer_id, uint32_t num_msg);

#ifdef __cplusplus
}
#endif

#endif
