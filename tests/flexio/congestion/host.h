/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the host program of tests/flexio/congestion share. */
#pragma once

#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "check.h"
#include "congestion.h"
#include "verbs_device.h"

extern struct flexio_app *congestion_app;
extern flexio_func_t peek, poke, table_of, ring, ring_by, rate_of_flow, events_waiting, queue_send,
	queue_done, control_flows;

#define OK(call)    CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define FAILS(call) CHECK((call) == FLEXIO_STATUS_FAILED)
#define RATE_MAX    (1u << 20)
#define ROOM	    (1u << 20)
#define MTU	    1024u
#define STILL_US    20000
#define PORT_SPEED  50e9 /* bytes a second */

/* Kinds of events, and of refusals. */
#define TX	      3
#define NACK	      5
#define RTT	      6
#define RNR_KIND      1
#define SEQUENCE_KIND 2

/* What follows a doorbell. */
enum next_action { NEXT_SINGLE, NEXT_MULTIPLE, NEXT_NONE };

/* A process that controls. */
struct bench {
	struct device_port port;
	struct flexio_process *p;
	struct flexio_event_handler *eh;
	uint64_t c; /* address of its struct control */
};

uint64_t call(struct flexio_process *p, flexio_func_t *f, uint64_t a, uint64_t b, uint64_t c,
	      uint64_t d);

#define get(b, field) call((b)->p, &peek, (b)->c + offsetof(struct control, field), 0, 0, 0)
#define set(b, field, value) \
	call((b)->p, &poke, (b)->c + offsetof(struct control, field), value, 0, 0)

void handler_up(struct bench *b);
void bench_up(struct bench *b, uint64_t rate, uint64_t probe, uint64_t next);
void bench_down(struct bench *b);
/* As a rate of the doorbell. */
uint64_t rate_of(double megabytes);

#define await(condition)                                    \
	do {                                                \
		for (unsigned n_ = 0; !(condition); n_++) { \
			CHECK(n_ < 20000);                  \
			usleep(1000);                       \
		}                                           \
	} while (0)

/* A connection within this program. */
struct line {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	uint8_t *memory; /* half of it is the target */
};

struct ibv_qp *qp_make(const struct line *l, enum ibv_qp_type type);
void line_up_of(struct line *l, const struct device_port *port, enum ibv_qp_type type);
#define line_up(l, port) line_up_of(l, port, IBV_QPT_RC)
void line_down(struct line *l);
void line_post(struct line *l, enum ibv_wr_opcode opcode, uint32_t bytes);
void line_await(struct line *l, unsigned n);
/* So many writes of so many bytes; how long that took. */
uint64_t line_write(struct line *l, unsigned n, uint32_t bytes);

struct host_case {
	const char *name;
	void (*run)(void);
};

/* Each ends with an entry without a name. */
extern const struct host_case flow_cases[], queue_cases[], limit_cases[];
