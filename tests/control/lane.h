/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane: two sides, in one process or two, each with one queue pair, its queues and memory.  A
 * thread of each side sends, one receives, and one does to the lane's objects what the control path
 * can do to them (control.c).
 *
 *     memory of a side:  SLOTS to send from | SLOTS to receive into | written by the peer | read
 * back
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "verbs_device.h"

#define SLOTS	   32u
#define SLOT_BYTES 4096u
#define UD_GRH	   40u

enum lane_slots { LANE_SEND = 0, LANE_RECV = SLOTS, LANE_WRITTEN = 2 * SLOTS, LANE_READ, LANE_ALL };

struct lane_kind {
	const char *name;
	enum ibv_qp_type type;
	bool srq;
	bool events; /* completion channels instead of polling */
};

/* What the other side must know. */
struct lane_hello {
	struct device_address address;
	uint64_t addr;
	uint32_t rkey;
};

struct side {
	const struct lane_kind *kind;
	struct device_port port;
	struct ibv_pd *pd;
	uint8_t *mem;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel[2]; /* 0: sends, 1: receives */
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct lane_hello peer;
	int sock;
	uint64_t seed;
	uint32_t messages, controls; /* at least so many */
	pthread_t sender, receiver, controller;

	_Atomic(uint64_t) sent, received, done; /* requests completed, messages, control calls */
	_Atomic(uint64_t) expected;		/* messages of the peer; UINT64_MAX: not known */
	_Atomic(bool) all_sent;
	_Atomic(bool) over; /* the controller may end */
};

/* Counted by all sides of the process: while it rises, nothing hangs. */
extern _Atomic(uint64_t) lane_progress;

void side_open(struct side *s, const char *device);
void side_connect(struct side *s);
void side_close(struct side *s);
/* Threads. */
void *side_send(void *side);
void *side_receive(void *side);
void *side_control(void *side);

/* The next completion of cq[which]; false: there is none and stop says that none is to come. */
bool side_completion(struct side *s, unsigned which, struct ibv_wc *wc,
		     bool (*stop)(struct side *));
uint32_t side_random(uint64_t *state, uint32_t below);
