/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reaches memory of a peer's process, named by its keys.  The owner of a key has decided in which
 * way others reach its memory (driver/uverbs/objects/share.c), and the key's block says so.  Only
 * this file of the initiator looks at that and follows it (reach/way.h), or leaves the request to
 * packets.
 */
#pragma once

#include "adapter/bypass/bypass_peer.h"
#include "adapter/qp/send_wqe.h"

/* The memory that a request names. */
struct remote_range {
	uint32_t rkey;
	uint64_t va, len;
};

struct remote_move {
	uint32_t right; /* IB_ACCESS_REMOTE_READ or REMOTE_WRITE */
	const struct remote_range *ranges;
	uint32_t n;		 /* up to WAY_REQUESTS */
	const struct run *local; /* our memory: as many bytes, or more */
	uint32_t nlocal;
	struct key_memo *memo; /* the requester's */
	/* results */
	uint32_t done;	  /* so many requests are executed, from the first on */
	enum key_way way; /* for traces; 'why' says why the next one was not executed */
	const char *why;
};

/*
 * Executes requests in their order at a peer in another process that the caller has entered.
 * Packets must carry those that are not executed: a key refuses, memory is not there, or no way is
 * open now.  The first of these may be executed in part.  The caller is a reader.
 */
void remote_move(const struct bypass_peer *r, struct remote_move *m);
/* Executes an atomic at mapped memory of such a peer.  False: it is not executed; true: *before is
 * what the memory held. */
bool remote_atomic(const struct bypass_peer *r, const struct send_wqe *w, struct key_memo *memo,
		   uint64_t *before) must_check;
/* Returns the way of a request that has to move in parts.  It is KEY_PACKETS also if the key does
 * not allow the whole request now, because a responder that refuses it takes none of the parts. */
enum key_way remote_way(const struct bypass_peer *r, uint32_t right,
			const struct remote_range *at) must_check;

/* For traces: names the way of a request that was executed at a peer. */
static inline const char *remote_way_name(const struct bypass_peer *r, enum key_way way)
{
	return r->remote ? key_way_name(way) : "same-process";
}
