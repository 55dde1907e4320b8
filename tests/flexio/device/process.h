/* SPDX-License-Identifier: BSD-2-Clause */
/* A DPA process with the device code of these tests, and files that one can look into while they are written. */
#pragma once

#include <libflexio/flexio.h>
#include <stdint.h>
#include <stdio.h>

#include "check.h"

#define CASE_SECONDS 30
/* Writers at a time, and how many lines each writes. */
#define WRITERS 8u
#define LINES	300u

extern flexio_func_t say, say_print, say_broadcast, say_puts, say_formats, say_long, say_libc;
extern flexio_func_t trace_all, trace_many, trace_wrong, trace_flush;
extern flexio_func_t count_locked, try_lock, count_atomic, initial_values, clocks_grow, fixed_point,
	fences;
extern flexio_func_t port_bytes, port_bytes_wrong;
extern flexio_func_t pass_messages, take_messages, library, read_errno;

struct test_case {
	const char *name;
	void (*run)(void);
};

extern const struct test_case stream_cases[], tracer_cases[],
	library_cases[]; /* the last has no name */
extern struct flexio_process *process;
extern struct ibv_context *context;

void process_open(void);
void process_close(void);

/* The result of a call that must succeed. */
#define CALL(function, ...)                                                                   \
	({                                                                                    \
		uint64_t call_result_ = ~0ull;                                                \
		CHECK(flexio_process_call(process, (function), &call_result_, __VA_ARGS__) == \
		      FLEXIO_STATUS_SUCCESS);                                                 \
		call_result_;                                                                 \
	})

/* A file for a stream to write to. */
FILE *capture_open(void);
/* What was written to it by now; the next call overwrites it. */
const char *capture_text(FILE *file);
/* Waits until that is there, and sees that nothing else is. */
void capture_expect(FILE *file, const char *text);
/* Waits until so many lines are there. */
const char *capture_lines(FILE *file, unsigned int lines);

/* Sees that each line is whole, and that those of each of WRITERS writers are in order. */
void check_lines(const char *text);

/* Calls the function from so many threads at a time, with (a, number of the thread, b). */
void call_from_threads(flexio_func_t *function, unsigned int threads, uint64_t a, uint64_t b);
