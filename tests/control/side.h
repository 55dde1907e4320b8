/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection: two sides, in one process or two, each with one queue pair, its queues and memory.
 * A thread of each side sends, one receives, and one does to the side's objects what the control
 * path can do to them (control.c).
 *
 *     memory of a side:  SLOTS to send from | SLOTS to receive into | written by the peer | read
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "verbs_device.h"

#define SLOTS	   32u
#define SLOT_BYTES 4096u
#define UD_GRH	   40u

enum side_slots { SIDE_SEND = 0, SIDE_RECV = SLOTS, SIDE_WRITTEN = 2 * SLOTS, SIDE_READ, SIDE_ALL };

struct side_kind {
	const char *name;
	enum ibv_qp_type type;
	bool srq;
	bool events; /* completion channels instead of polling */
};

/* What the other side must know. */
struct side_hello {
	struct device_address address;
	uint64_t addr;
	uint32_t rkey;
};

struct control_side {
	const struct side_kind *kind;
	struct device_port port;
	struct ibv_pd *pd;
	uint8_t *mem;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel[2]; /* 0: sends, 1: receives */
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct side_hello peer;
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
extern _Atomic(uint64_t) side_progress;

void side_open(struct control_side *s, const char *device);
void side_connect(struct control_side *s);
void side_close(struct control_side *s);
/* Threads. */
void *side_send(void *side);
void *side_receive(void *side);
void *side_control(void *side);

/* The next completion of cq[which]; false: there is none and stop says that none is to come. */
bool side_completion(struct control_side *s, unsigned which, struct ibv_wc *wc,
		     bool (*stop)(struct control_side *));
uint32_t side_random(uint64_t *state, uint32_t below);
