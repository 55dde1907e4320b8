/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Agents send MADs from a port and get those for it.  Programs' umad files, the built-in SM and SA
 * and the senders of traps are all agents.  Rules and error numbers are those of the kernel's MAD
 * layer (drivers/infiniband/core/mad.c).
 */
#pragma once

#include "fabric/daemon/mad/mad.h"

struct mad_agent_attr {
	uint32_t row;
	uint8_t qpn;   /* 0 or 1 */
	uint8_t class; /* 0: the agent gets no requests */
	uint8_t class_version;
	uint8_t oui[3];
	uint8_t rmpp_version; /* 0 or 1 */
	bool user_rmpp;
	uint64_t methods[2]; /* bit n of word n/64 */
};

/* A whole message that has arrived: one MAD, or several that RMPP has put together. */
struct mad_message {
	struct mad_address from;
	uint32_t length; /* MAD_BYTES, or the length that RMPP says */
	const uint8_t *data;
	uint8_t *
		owned; /* malloc'd, data points into it: store NULL to take it; NULL: copy 'data' */
};

struct mad_send_attr {
	struct mad_address to;
	const uint8_t *mad;
	uint32_t length;     /* above MAD_BYTES only with RMPP active */
	uint32_t timeout_ms; /* 0: no answer expected */
	uint32_t retries;
	uint8_t note[64]; /* ops->sent gives it back */
};

/* The loop calls these; neither may end its agent. */
struct mad_agent_ops {
	void (*receive)(struct mad_agent *a, struct mad_message *m);
	/* A send is over: 0, -ETIMEDOUT (the only one that programs hear of), -ECANCELED (the agent
	 * ends), -EPROTO (the peer aborted), -ENOMEM.  Called once for each send that was taken.
	 * 'header': the first MAD_HEADER_BYTES of the send as they travelled. */
	void (*sent)(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
		     int status);
};

struct mad_send; /* a send under way; send.h */
struct rmpp_recv;

/* The sends under way among which duplicates are refused: those of one file.  All zero at first. */
struct mad_scope {
	struct mad_fabric *fabric;
	uint32_t count;
};

struct mad_agent {
	struct mad_fabric *fabric;
	const struct mad_agent_ops *ops;
	struct mad_scope *scope;
	struct mad_agent_attr attr;
	uint32_t tid; /* high half of its requests' TIDs */
	struct mad_agent *next_of_port, *next_by_tid;
	struct mad_send *sends;
	struct rmpp_recv *recvs;
	uint32_t nsends, nrecvs; /* nrecvs: receives that are not complete */
};

/*
 * Registers the agent, with the checks of the kernel's ib_register_mad_agent.  0, -EPROTONOSUPPORT,
 * -EINVAL, -ENOMEM.
 */
int mad_agent_register(struct mad_fabric *f, struct mad_agent *a, const struct mad_agent_attr *attr,
		       const struct mad_agent_ops *ops, struct mad_scope *scope) must_check;
/* Ends its sends (ops->sent says -ECANCELED), and drops what it was receiving. */
void mad_agent_unregister(struct mad_agent *a);
/*
 * Sends after mad_send_check, unless it is a duplicate, and rewrites the TID of requests.  A
 * directed route that does not begin here is lost on its way.  0, -EINVAL, -ENOMEM.
 */
int mad_agent_send(struct mad_agent *a, const struct mad_send_attr *s) must_check;
/* Tells whether mad_agent_send would refuse this as a duplicate. */
bool mad_scope_has(const struct mad_scope *s, uint64_t tid, unsigned class, bool response,
		   const struct mad_address *to) must_check;
/* Answers a request that has arrived, with its address turned round. */
int mad_agent_reply(struct mad_agent *a, const struct mad_message *request, const uint8_t *mad,
		    uint32_t length) must_check;

/* ---- what forward.c asks ---- */

/* Returns the agent that an arrived MAD belongs to, or NULL; *send: the request that it answers. */
struct mad_agent *agent_find(struct mad_fabric *f, const struct mad_packet *p,
			     struct mad_send **send);
/* Gives the MAD to the agent; p stays the caller's. */
void agent_take(struct mad_agent *a, struct mad_send *send, const struct mad_packet *p);
