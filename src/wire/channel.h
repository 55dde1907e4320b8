/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared memory between two processes: a ring each way, and a word from each side on whether it
 * can read the other's memory.
 *
 * Locks: sending is under tx_lock, receiving and teardown under the link's receive lock
 * (link_shm.h).  The struct is never freed while the link lives, only used again, so a sender that
 * lost a race against teardown finds out under tx_lock (mem is NULL, or peer is another).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/spin.h"
#include "wire/record.h"
#include "wire/ring.h"
#include "wire/wire.h"

#define CHANNEL_ABI 9u

/* From this size on, reading the sender's memory (a system call) is cheaper than two copies through
 * the ring with the cache traffic of the first (see the wire benchmark). */
#define CHANNEL_REFERENCE_MIN (8u * 1024u)
/* One packet by reference: large enough to hide the system call, small enough not to keep others
 * waiting. */
#define CHANNEL_REFERENCE_MAX (1u << 20)

enum channel_readable { READABLE_UNKNOWN, READABLE_YES, READABLE_NO };

/* What one side tells the other. */
struct channel_side {
	cacheline_aligned _Atomic(uint32_t) abi; /* CHANNEL_ABI once the side is attached */
	/* Can this side read the other's memory?  enum channel_readable */
	_Atomic(uint32_t) readable;
};

struct channel_mem {
	struct channel_side side[2];
	struct ring_shared ring[2]; /* by sending side */
	cacheline_aligned unsigned char data[];
};

struct channel {
	struct spin tx_lock;
	struct ring tx;
	_Atomic(bool) broken;	      /* the peer wrote nonsense: carries nothing more */
	_Atomic(bool) by_reference;   /* the peer can read our memory */
	_Atomic(bool) starved;	      /* a sender was told WIRE_BUSY */
	_Atomic(uint32_t) inline_max; /* largest payload that goes along */
	_Atomic(uint64_t)
		idle_tail; /* where the peer's cursor stood when it did not move for a while */
	uint16_t peer;
	uint8_t side; /* ours, 0 or 1 */
	struct channel_mem *mem;
	size_t bytes;
	/* under tx_lock */
	uint64_t refs_up_to;  /* payloads by reference are in front of this cursor */
	uint64_t stuck_tail;  /* where the peer's cursor stood when there was no room, */
	uint64_t stuck_since; /* ns: since when; 0: never */

	cacheline_aligned struct ring rx;
	bool frames;	      /* what came last was a frame */
	bool met;	      /* the peer's side is of our version */
	bool by_reference_ok; /* we have said once that we can read the peer's memory */
	struct pkt_foreign sender;
	struct channel *next; /* among those that are to be torn down, or can be used again */
	struct record_pkt in; /* the packet being delivered */
};

/* Maps the memory (the descriptor stays the caller's) and introduces ourselves. */
int channel_attach(struct channel *ch, uint16_t peer, int fd, size_t bytes, int side) must_check;
/* Under the receive lock, after nobody can look the channel up any more. */
void channel_detach(struct channel *ch);

/* True: *verdict is WIRE_SENT and the peer must be told. */
bool channel_send(struct channel *ch, uint16_t peer, const struct pkt *p,
		  enum wire_verdict *verdict);
/* For who fills records of the ring tx by itself.  False: there is nothing to send through. */
bool channel_hold(struct channel *ch, uint16_t peer) must_check;

static inline void channel_release(struct channel *ch)
{
	spin_unlock(&ch->tx_lock);
}

/* False: channel_send would return WIRE_BUSY for this unreliable packet, until CHANNEL_ROOM is
 * told. */
bool channel_has_room(struct channel *ch, uint16_t peer, const struct pkt *p);
/*
 * Takes payloads by reference back.  After the return, the peer delivers none of them that it reads
 * from then on, even if it is stopped in the middle of one.  True: it may be reading one, and is
 * out of it after a revocation (reach/access.h).  Calls lost (may be NULL) under tx_lock for each
 * queue pair concerned.
 */
bool channel_withdraw(struct channel *ch, uint16_t peer, const struct record_refs *refs,
		      void (*lost)(void *user, uint32_t sqpn), void *user);
/* There was no room: waits a little while for the peer to take something.  False: it does not, or did
 * not the last time and has not since. */
bool channel_room_soon(struct channel *ch, uint16_t peer) must_check;
/* Has the peer not taken all that was sent?  True may mean, the first time, that it has not said so
 * yet: it says so when it looks next. */
bool channel_unread(struct channel *ch, uint16_t peer);
uint32_t channel_max_payload(struct channel *ch, bool by_reference_ok);

/* Under the receive lock, attached: is there anything for channel_drain to do? */
bool channel_has_news(const struct channel *ch);

enum channel_news {
	CHANNEL_DELIVERED = 1 << 0,
	CHANNEL_MORE = 1 << 1,	    /* the budget is used up */
	CHANNEL_TELL_PEER = 1 << 2, /* there is room again, or an answer */
	CHANNEL_ROOM = 1 << 3,	    /* those who were told WIRE_BUSY may try again */
};

/* Who takes what arrives. */
struct channel_sink {
	void (*packet)(void *user, const struct pkt *p);
	/* The same of brief requests for that port from n records, each of which follows on the one
	 * before; so many requests were taken, the next goes to packet. */
	uint32_t (*briefs)(void *user, uint32_t dst_port, const struct brief *b, uint32_t n);
	void *user;
};

/* Under the receive lock: delivers records until the budget is used up; enum channel_news.  peer:
 * where the other process's memory is reached during the call; NULL: it is out of reach. */
unsigned channel_drain(struct channel *ch, struct way_peer *peer, bool all,
		       const struct channel_sink *to);
