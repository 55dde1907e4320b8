/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the host program of tests/flexio/queues share. */
#pragma once

#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <stdbool.h>
#include <stddef.h>

#include "check.h"
#include "queue.h"

extern struct flexio_app *queues_app;
extern flexio_func_t peek, poke, arm, complete, complete_by, complete_extended, record_of, handle,
	poll_queue, watch, total, odd_bells, end_it, window_copy, window_address, say, window_first,
	count_task, eq_take;

#define OK(call)    CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define FAILS(call) CHECK((call) == FLEXIO_STATUS_FAILED)

/* ---- host.c ---- */

struct ibv_context *device_open(unsigned n);
/* The result of a call; all arguments are words. */
uint64_t call1(struct flexio_process *p, flexio_func_t *f, uint64_t a);
uint64_t call2(struct flexio_process *p, flexio_func_t *f, uint64_t a, uint64_t b);
uint64_t call3(struct flexio_process *p, flexio_func_t *f, uint64_t a, uint64_t b, uint64_t c);

/* A process, a handler that has been set running, and a queue that activates it. */
struct bench {
	struct ibv_context *ctx;
	struct flexio_process *p;
	struct flexio_event_handler *eh;
	struct flexio_cq *cq;
	uint32_t cqn;
	uint64_t q; /* address of its struct queue */
	uint64_t ring, record;
	struct flexio_cq_attr attr; /* that the queue is made with */
};

/* Process and handler, with an argument that says what it does. */
void bench_up(struct bench *b, uint64_t how);
/* And the queue, by attr, which bench_up has filled in for 2^log entries. */
void bench_queue(struct bench *b, unsigned log);
void bench_down(struct bench *b);

/* A struct queue of the heap with ring and record for 2^log entries, none of which is new. */
uint64_t queue_make(struct flexio_process *p, unsigned log, uint64_t how,
		    struct flexio_cq_attr *attr);
#define queue_get(b, field) call1((b)->p, &peek, (b)->q + offsetof(struct queue, field))
#define queue_set(b, field, value) \
	call2((b)->p, &poke, (b)->q + offsetof(struct queue, field), value)
/* Waits until a word has at least this value; then it must not be more, as far as a moment tells. */
void word_await(struct flexio_process *p, uint64_t addr, uint64_t value);
void word_stays(struct flexio_process *p, uint64_t addr, uint64_t value);
#define queue_await(b, field, value) \
	word_await((b)->p, (b)->q + offsetof(struct queue, field), value)
#define queue_stays(b, field, value) \
	word_stays((b)->p, (b)->q + offsetof(struct queue, field), value)

struct host_case {
	const char *name;
	void (*run)(void);
};

/* Each ends with an entry without a name. */
extern const struct host_case queue_cases[], handler_cases[], thread_cases[], key_cases[],
	busy_cases[], eq_cases[], place_cases[];

/* ---- peer.c: a verbs program without a DPA, and a queue pair that completes on a queue of the DPA ---- */

struct peer;

struct peer *peer_make(struct ibv_context *ctx);
uint32_t peer_number(const struct peer *peer);
void peer_connect(struct peer *peer, uint32_t qpn, uint16_t lid);
/* Sends so many messages of so many bytes, and waits for the completions. */
void peer_send(struct peer *peer, unsigned n, uint32_t bytes);
void peer_free(struct peer *peer);
uint16_t peer_lid(struct ibv_context *ctx);
/* The same as a program of its own: argv of main, from the name on. */
int peer_main(int argc, char **argv);

struct receiver;

/* A queue pair of DEVX that receives, with its completions on that queue. */
struct receiver *receiver_make(struct ibv_context *ctx, uint32_t cqn, uint32_t user_index);
uint32_t receiver_number(const struct receiver *r);
void receiver_connect(struct receiver *r, uint32_t qpn, uint16_t lid);
/* Makes a receiver and a peer of the same device, and connects them. */
struct receiver *receiver_with_peer(struct ibv_context *ctx, uint32_t cqn, uint32_t user_index,
				    struct peer **peer);
void receiver_post(struct receiver *r, unsigned n);
void receiver_free(struct receiver *r);
