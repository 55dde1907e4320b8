/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What storage targets post per request: a transfer through a key with signatures, and behind it
 * the response, fenced, which must not go out if the transfer's data was bad.
 */
#pragma once

#include "connected_pair.h"

#define PIPELINE_BLOCK 512u
#define PIPELINE_UNIT  516u

/* Keys 0 .. keys - 1 of the local side, each checking a block of its own. */
void pipeline_open(struct connected_pair *s, bool pipelining, int keys);
/* With one key, and stopped by bad data that has been posted. */
void pipeline_open_stopped(struct connected_pair *s);
/* Good, or bad by one bit of its data. */
void pipeline_fill(struct connected_pair *s, int key, bool good);
/* Configures the key once more, which arms it; no completion. */
void pipeline_arm(struct connected_pair *s, int key);
/* The transfer of a key's block to remote memory. */
struct request pipeline_write(struct connected_pair *s, int key, uint64_t id, unsigned flags);
/* The response; the remote side must have a receive for it. */
struct request pipeline_response(struct connected_pair *s, uint64_t id, unsigned flags);
void pipeline_expect_receive(struct connected_pair *s, uint64_t id);
/* The event has come: it is in SQD, and one polling of the queue shows all errors. */
unsigned pipeline_drained(struct connected_pair *s, struct ibv_wc *wc, unsigned max);
void pipeline_resume(struct connected_pair *s);

#define FENCED (IBV_SEND_FENCE | IBV_SEND_SIGNALED)
