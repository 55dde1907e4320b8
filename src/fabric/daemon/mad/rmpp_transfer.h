/* SPDX-License-Identifier: BSD-2-Clause */
/* RMPP's machines with packets and time, for the files of this folder. */
#pragma once

#include "fabric/daemon/mad/rmpp.h"
#include "fabric/daemon/mad/send.h"

/* Messages of several packets that are arriving, and those that arrived lately. */

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

#define RMPP_REPLY_RETRIES 3u /* for answers that we give ourselves */

/* ---- rmpp_transfer.c: a send of several packets ---- */

int rmpp_transfer_new(struct mad_send *send, const struct mad_send_attr *s) must_check;
void rmpp_transfer_free(struct rmpp_transfer *t);
void rmpp_transfer_begin(struct mad_send *send);
/* A packet of the send has left: time runs for its acknowledgement, or for the answer. */
void rmpp_transfer_left(struct mad_send *send);
/* Time is over: sends again, or returns false. */
bool rmpp_transfer_again(struct mad_send *send) must_check;

/* ---- rmpp_transfer.c: what arrives ---- */

/* A packet of RMPP has come. */
void rmpp_receive(struct mad_agent *a, const struct mad_packet *p);
/* The agent ends. */
void rmpp_receives_end(struct mad_agent *a);
