/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Revoking (access.h) for callers that may not wait: a thread in the middle of the data path asks
 * for a revocation, does something else, and comes back to see whether it is over.
 */
#pragma once

#include "base/spin.h"
#include "reach/access.h"

/* A thread that was found in an access. */
struct access_wait {
	struct access_slot *slot;
	uint64_t owner;
	bool outlaw;	  /* of a process of several outlaws */
	bool seen;	  /* to run, before */
	uint64_t seen_ms; /* of its processor time then */
	uint64_t ran_ms;  /* since the first look */
	uint64_t unknown_ns;
};

/* All of them, and none that came later. */
struct access_revocation {
	uint32_t n; /* that may still be in the access */
	uint64_t looked_ns, look_again_ns;
	uint64_t ran_ms; /* all of them together */
	struct access_wait waits[ACCESS_HOMES + ACCESS_SLOTS];
};

/* Private memory of the target; zeros at first. */
struct access_revoker {
	_Atomic(uint64_t) asked, over; /* tickets */
	struct spin busy;	       /* of what follows; nobody waits for it */
	uint64_t begun;		       /* the last ticket that 'now' is for; 0: there is none */
	struct access_revocation now;
};

/* The caller has made something invalid.  A ticket to ask with. */
uint64_t access_revoke_ask(struct access_revoker *v);
/* Is it over, as access_revoke would be?  Takes some microseconds, and is to be called again. */
bool access_revoke_over(struct access_revoker *v, struct access_table *t, uint64_t ticket);
