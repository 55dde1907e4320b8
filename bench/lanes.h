/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes that are connected by one or two queue pairs, each with a thread of its own in either process, and
 * memory of the kind that is asked for: the shapes of programs in which onesided and sends measure.
 *
 * PROGRAM DEVICE SHAPE MEMORY
 *   SHAPE   single    one thread in each process
 *           sleeper   a second thread in each process, which sleeps
 *           pairs     two queue pairs, each with a thread of its own in each process
 *   MEMORY  private   anonymous memory of the program
 *           stack     the same, of the main thread's stack
 *           shared    a memfd that the program has mapped
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "verbs_device.h"

#define LANES_LIST  16u /* requests posted at once */
#define LANES_MOST  2u
#define LANES_BLOCK 65536u
#define LANES_LARGE (1u << 20)
/* Of a lane's memory: words that the two sides poll; the rest takes blocks. */
#define LANES_BYTES    (LANES_BLOCK_AT + LANES_LARGE)
#define LANES_WORD_AT  0u
#define LANES_BLOCK_AT LANES_BLOCK

/* Rounds of a poll before the processor is given away, where more threads poll than there are
 * processors. */
#define LANES_POLLS 100u

/* What the two processes must know of each other. */
struct lanes_hello {
	struct device_address address[LANES_MOST];
	uint64_t memory;
	uint32_t rkey;
	pid_t pid;
};

struct lanes_side {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct lanes_hello peer;
	unsigned lanes;
	bool first;   /* begins each exchange, and prints */
	bool crowded; /* more threads poll than there are processors */
	int fd;
};

/* One thread's part: a queue pair, a piece of memory at either side. */
struct lane {
	struct lanes_side *side;
	unsigned number;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *local;
	uint64_t remote;
	uint64_t token; /* the next value to send, or to wait for */
	uint64_t sent, answered, received;
	double result;
	uint64_t began_ns, ended_ns;
};

struct mover;

struct lanes_measure {
	const char *name, *unit;
	/* Returns the figure. */
	double (*run)(struct lane *l, const struct mover *m);
	bool sum;		   /* the lanes' figures add up; otherwise their mean is meant */
	const struct mover *floor; /* measured likewise, and printed as "floor_"; NULL: none */
};

struct lanes_program {
	const char *name;
	struct ibv_qp_cap cap;
	void (*begin)(struct lane *l); /* once the lane is connected; NULL: nothing */
	const struct mover *mover;
	const struct lanes_measure *measures;
	unsigned count;
};

/* All of main: prints "name value unit" lines. */
int lanes_main(int argc, char **argv, const struct lanes_program *program);

/* The mean time of one since then. */
double lanes_us_each(uint64_t start, unsigned times);
