/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of several packets that are coming, and those that have come lately. */
#pragma once

#include "fabric/daemon/mad/rmpp_source.h"
#include "fabric/daemon/mad/send.h"

#define RMPP_BUCKETS 4096u

struct rmpp_recv {
	struct rmpp_recv *next, **prev; /* of the agent */
	struct rmpp_recv *hash_next, **hash_prev;
	struct mad_agent *agent;
	struct loop_timer timer; /* of the whole; then, of a memory of it */
	struct rmpp_part part;
	struct rmpp_source *lent; /* whose message part.lender is */
	uint32_t answer_window;	  /* that the sender has said, when all had come */
	struct mad_packet first;  /* of its packets: who it is from */
};

/* Those whose TID has the same place in the table, which is there. */
struct rmpp_recv **rmpp_recv_bucket(const struct mad_fabric *f, const uint8_t *mad);
/* The one that a packet is of, or NULL. */
struct rmpp_recv *rmpp_recv_find(struct mad_agent *a, const struct mad_packet *p);
/* An ACK has come that turns the direction of a request that has arrived: so much may come of its answer at first. */
void rmpp_recv_turned(struct mad_agent *a, const struct mad_packet *p);
/* What such an ACK has said for this answer; else 1. */
uint32_t rmpp_recv_window(const struct mad_send *answer);
