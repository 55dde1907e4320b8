/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends under way, for the files of this folder. */
#pragma once

#include "fabric/daemon/mad/agent.h"

struct rmpp_transfer;

struct mad_send {
	struct mad_send *next, **prev;		 /* list of the agent; in the pool: next */
	struct mad_send *hash_next, **hash_prev; /* in mad_fabric.sends */
	struct mad_agent *agent;
	struct mad_packet *packet; /* in the queue; or NULL */
	struct loop_timer timer;
	struct mad_address to;
	uint64_t tid;
	uint32_t timeout_ms, retries;
	bool response;		    /* the send is a response itself */
	bool waiting;		    /* it has left, and its answer may come */
	bool no_duplicate;	    /* not checked for duplicates: the program does RMPP itself */
	struct rmpp_transfer *rmpp; /* NULL: the send has one MAD */
	uint8_t note[64];
	uint8_t mad[MAD_BYTES]; /* as it travels; with RMPP only the headers */
};

/* ---- send.c ---- */

/*
 * The packet has left, or is to stay at its port (p->local): if it belongs to a send, this starts
 * the send's timer or ends the send.
 */
void send_packet_leaves(struct mad_packet *p);
/* Makes a packet of the send, all but its MAD.  NULL: no memory, which counts as lost. */
struct mad_packet *send_packet(struct mad_send *send);
/* Emits the packet; the send goes on when it leaves, so there may be one such packet at a time. */
void send_emit(struct mad_send *send, struct mad_packet *p);
/* Takes the send out of all lists and stops its timer.  Its agent still has to hear of it. */
void send_detach(struct mad_send *send);
/* Tells the agent of a detached send and frees it. */
void send_report(struct mad_send *send, int status);
/* Returns the first of the sends with this TID. */
struct mad_send *send_first(const struct mad_fabric *f, uint64_t tid);
struct mad_send *send_next(const struct mad_send *send);
/* Returns the agent's send that this response answers, or NULL. */
struct mad_send *send_find(struct mad_agent *a, const struct mad_packet *p);
void sends_close(struct mad_fabric *f);

/* ---- agent.c ---- */

/* Where p came from, as the agents of its port see it. */
struct mad_address agent_address_of(const struct mad_fabric *f, const struct mad_packet *p);
