/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of several packets that are arriving, and those that arrived lately. */
#pragma once

#include "fabric/daemon/mad/rmpp.h"
#include "fabric/daemon/mad/send.h"

#define RMPP_BUCKETS 4096u

struct rmpp_recv {
	struct rmpp_recv *next, **prev; /* list of the agent */
	struct rmpp_recv *hash_next, **hash_prev;
	struct mad_agent *agent;
	struct loop_timer timer; /* for the whole message; later, for the memory of it */
	struct rmpp_part part;
	uint32_t answer_window;	 /* window that the sender gave when all had come */
	struct mad_packet first; /* its first packet, which says who sent it */
};

/* Returns the bucket of the table for this TID; the table must be there. */
struct rmpp_recv **rmpp_recv_bucket(const struct mad_fabric *f, const uint8_t *mad);
/* Returns the message that a packet belongs to, or NULL. */
struct rmpp_recv *rmpp_recv_find(struct mad_agent *a, const struct mad_packet *p);
/*
 * An ACK has come that turns the direction of a request: it says how much of the answer may come at
 * first.
 */
void rmpp_recv_turned(struct mad_agent *a, const struct mad_packet *p);
/* Returns the window that such an ACK has given for this answer; else 1. */
uint32_t rmpp_recv_window(const struct mad_send *answer);
