/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the host program of tests/flexio/faults share. */
#pragma once

#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <pthread.h>
#include <stdbool.h>

#include "check.h"

extern struct flexio_app *faults_app;
extern flexio_func_t archive, other_archive;
extern flexio_func_t nothing, code, load, store, fill, nested, overflow, large, jump, divide, trap,
	breakpoint, report, spin, stuck, locked, ask, window_byte, window_gone, window_copy, meet,
	peek, poke, complete, handle, endless, failing, writing;

#define OK(call)    CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define FAILS(call) CHECK((call) == FLEXIO_STATUS_FAILED)
#define PATIENT_MS  60000

/* ---- host.c ---- */

struct ibv_context *host_device(void);
struct flexio_process *host_process(void);
/* Whether the process has said that it failed; waits so long. */
bool is_failed(struct flexio_process *p, int wait_ms);
uint64_t now_us(void);
/* The result of a call that succeeds; all arguments are words. */
uint64_t call(struct flexio_process *p, flexio_func_t *f, uint64_t a);
void word_await(struct flexio_process *p, flexio_uintptr_t addr, uint64_t value);
/* Two words of the heap, zero. */
flexio_uintptr_t words_make(struct flexio_process *p);

/* NAME.N.core in the current directory, and NAME.image, which gdb wants beside it. */
void core_write(struct flexio_process *p, const char *name);

/* A call that ends in a failure, in a thread of its own. */
struct failing_call {
	struct flexio_process *p;
	flexio_func_t *f;
	uint64_t a, b;
	bool destroyed; /* its process is, before it returns */
	pthread_t thread;
};

void failing_call_start(struct failing_call *c);
void failing_call_end(struct failing_call *c);

/* A handler and a queue that activates it. */
struct handler {
	struct flexio_process *p;
	struct flexio_event_handler *eh;
	struct flexio_cq *cq;
};

void handler_make(struct handler *h, struct flexio_process *p, uint64_t arg);
void handler_activate(const struct handler *h);

struct host_case {
	const char *name;
	void (*run)(void);
};

/* Each ends with an entry without a name. */
extern const struct host_case kind_cases[], failure_cases[];
