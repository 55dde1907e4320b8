/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Revoking (access.h) for callers that may not wait: a thread in the middle of the data path asks
 * for a revocation, does something else, and comes back to see whether it is over.
 */
#pragma once

#include "base/spin.h"
#include "reach/access.h"

/* A thread that we have found in an access. */
struct access_wait {
	struct access_slot *slot;
	uint64_t owner;
	bool misbehaves;  /* several threads of its process have not let go in time */
	bool seen;	  /* we have seen it run before */
	uint64_t seen_ms; /* its processor time then */
	uint64_t ran_ms;  /* since the first look */
	uint64_t unknown_ns;
};

/* All threads that were in an access when the revocation began, and none that came later. */
struct access_revocation {
	uint32_t n; /* threads that may still be in the access */
	uint64_t looked_ns, look_again_ns;
	uint64_t ran_ms; /* of all threads together */
	struct access_wait waits[ACCESS_HOMES + ACCESS_SLOTS];
};

/* Private memory of the target; zeros at first. */
struct access_revoker {
	_Atomic(uint64_t) asked, over; /* tickets */
	struct spin busy;	       /* of the members below; nobody waits for it */
	/* The last ticket that 'now' serves; 0: no revocation is under way. */
	uint64_t begun;
	struct access_revocation now;
};

/* Call it when something has been made invalid.  Returns a ticket to ask with. */
uint64_t access_revoke_ask(struct access_revoker *v);
/* True if the revocation is over, in the sense of access_revoke.  Takes some microseconds; the
 * caller calls it again if it is false. */
bool access_revoke_over(struct access_revoker *v, struct access_table *t, uint64_t ticket);
