/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the host program of tests/flexio/calls share. */
#pragma once

#include <libflexio/flexio.h>

#include "check.h"

extern struct flexio_app *calls_app;
extern flexio_func_t add, nothing, mixed, frame, pointers, last, count, sum, await_word, say,
	context, load, store, overflow, jump, spin, fail, finish, leave, on_error, task, in_order,
	endless, nested, window_sum, window_store, window_linear, window_keys, window_out,
	window_in, window_wait, window_meet, window_answer, digest, meet, copy, meet_task,
	lonely_task, held_task, byte_task, context_task, not_one, number_task, count_at, count_code;

#define OK(call)    CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define FAILS(call) CHECK((call) == FLEXIO_STATUS_FAILED)

/* A device that is open until the program ends. */
struct ibv_context *host_device(void);
struct flexio_process *host_process(void);
/* The result of a call that must succeed. */
#define RESULT(process, ...)                                               \
	({                                                                 \
		uint64_t result_ = UINT64_MAX;                             \
		OK(flexio_process_call((process), host_first(__VA_ARGS__), \
				       &result_ host_rest(__VA_ARGS__)));  \
		result_;                                                   \
	})
#define host_first(first, ...) (first)
#define host_rest(first, ...)  __VA_OPT__(, ) __VA_ARGS__

struct host_case {
	const char *name;
	void (*run)(void);
};

/* Each ends with an entry without a name. */
extern const struct host_case app_cases[], memory_cases[], call_cases[], error_cases[],
	cmdq_cases[], window_cases[], end_cases[];
