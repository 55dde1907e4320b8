/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a peer's process, named by its keys.  This file alone decides which way an access
 * goes (reach/way.h).
 */
#pragma once

#include "adapter/bypass/bypass_peer.h"

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
	/* results */
	uint32_t done;	 /* so many are executed, from the first on */
	const char *way; /* for traces; and why the next one was not */
	const char *why;
};

/*
 * Executes requests in their order at a peer of another process that was entered.  Those that are
 * not done must go by packets: a key refuses, memory is not there, or no way is open now.  One that
 * is not done may be in part.  Under RCU.
 */
void remote_move(const struct bypass_peer *r, struct remote_move *m);
/* Does the key allow it now, and lead to memory that both map?  For who moves a request in parts: a
 * responder that refuses it takes none of them. */
bool remote_is_mapped(const struct bypass_peer *r, uint32_t right,
		      const struct remote_range *at) must_check;
