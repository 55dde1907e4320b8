/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a peer's process, named by its keys.  The owner of a key has decided by which way its
 * memory is reached (driver/uverbs/objects/share.c), and its block says it.  Here, and nowhere else
 * in the initiator, that is looked at and followed (reach/way.h), or the request left to packets.
 */
#pragma once

#include "adapter/bypass/bypass_peer.h"
#include "adapter/qp/send_wqe.h"

/* What a request names. */
struct remote_range {
	uint32_t rkey;
	uint64_t va, len;
};

struct remote_move {
	uint32_t right; /* IB_ACCESS_REMOTE_READ or REMOTE_WRITE */
	const struct remote_range *ranges;
	uint32_t n;		 /* up to WAY_REQUESTS */
	const struct run *local; /* as many bytes, or more */
	uint32_t nlocal;
	struct key_memo *memo; /* the requester's */
	/* results */
	uint32_t done;	  /* so many are executed, from the first on */
	enum key_way way; /* for traces; and why the next one was not */
	const char *why;
};

/*
 * Executes requests in their order at a peer of another process that was entered.  Those that are
 * not done must go by packets: a key refuses, memory is not there, or no way is open now.  One that
 * is not done may be in part.  Under RCU.
 */
void remote_move(const struct bypass_peer *r, struct remote_move *m);
/*
 * Executes an atomic at memory of such a peer that is mapped.  False: it is not executed; true: *before is
 * what the memory held.
 */
bool remote_atomic(const struct bypass_peer *r, const struct send_wqe *w, struct key_memo *memo,
		   uint64_t *before) must_check;
/*
 * The way of a request that is to move there in parts; KEY_PACKETS, too, if the key does not allow
 * the whole of it now: a responder that refuses it takes none of the parts.
 */
enum key_way remote_way(const struct bypass_peer *r, uint32_t right,
			const struct remote_range *at) must_check;

/* For traces: the way of what was executed at a peer. */
static inline const char *remote_way_name(const struct bypass_peer *r, enum key_way way)
{
	return r->remote ? key_way_name(way) : "same-process";
}
