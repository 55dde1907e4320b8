/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends under way, for the files of this room. */
#pragma once

#include "fabric/daemon/mad/agent.h"

struct rmpp_transfer;

struct mad_send {
	struct mad_send *next, **prev;		 /* of the agent; in the pool: next */
	struct mad_send *hash_next, **hash_prev; /* in mad_fabric.sends */
	struct mad_agent *agent;
	struct mad_packet *packet; /* in the queue, or NULL */
	struct loop_timer timer;
	struct mad_address to;
	uint64_t tid;
	uint32_t timeout_ms, retries;
	bool response;	   /* a response itself */
	bool waiting;	   /* has left, and its answer may come */
	bool no_duplicate; /* not looked at for duplicates: RMPP that a program does itself */
	struct rmpp_transfer *rmpp; /* NULL: one MAD */
	uint8_t note[64];
	uint8_t mad[MAD_BYTES]; /* as it travels; of RMPP the headers */
};

/* ---- send.c ---- */

/* The packet goes: if it is a send's, the timer, or its end, follows.  It is called before an answer can come. */
void send_packet_leaves(struct mad_packet *p);
/* A packet to where the send goes, all but its MAD.  NULL: no memory, which counts as lost. */
struct mad_packet *send_packet(struct mad_send *send);
/* Emits it; the send goes on when it leaves: there may be one such packet at a time. */
void send_emit(struct mad_send *send, struct mad_packet *p);
/* Out of all lists, no more timer; its agent hears of it unless it is ended by itself. */
void send_detach(struct mad_send *send);
/* Tells the agent and frees it; it is detached. */
void send_report(struct mad_send *send, int status);
/* All sends with this TID. */
struct mad_send *send_first(const struct mad_fabric *f, uint64_t tid);
struct mad_send *send_next(const struct mad_send *send);
/* The send of an agent that this response answers, or NULL. */
struct mad_send *send_find(struct mad_agent *a, const struct mad_packet *p);
void sends_close(struct mad_fabric *f);

/* ---- register.c ---- */

struct mad_agent *agent_by_tid(const struct mad_fabric *f, uint32_t tid);

/* ---- agent.c ---- */

/* Where p came from, as the agents of its port see it. */
struct mad_address agent_address_of(const struct mad_fabric *f, const struct mad_packet *p);
