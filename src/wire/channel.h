/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared memory between two processes: a ring in each direction, and a word of each side that
 * says whether it can read the other's memory.
 *
 * Locks: senders hold tx_lock; receiving and teardown hold the link's receive lock (link_shm.h).
 * The struct is not freed while the link lives, only used again.  So a sender that lost a race
 * against teardown finds that out under tx_lock (mem is NULL, or peer is another).
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
/* The most bytes of one packet by reference: large enough to hide the system call, small enough not
 * to keep others waiting. */
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
	_Atomic(bool) broken;	    /* the peer wrote nonsense: the channel carries nothing more */
	_Atomic(bool) by_reference; /* the peer can read our memory */
	_Atomic(bool) starved;	    /* a sender was told WIRE_BUSY */
	_Atomic(uint32_t) inline_max; /* the largest payload that goes along in the record */
	/* Where the peer's cursor stood when it did not move for a while. */
	_Atomic(uint64_t) idle_tail;
	uint16_t peer;
	uint8_t side; /* ours, 0 or 1 */
	struct channel_mem *mem;
	size_t bytes;
	/* under tx_lock */
	uint64_t refs_up_to;  /* all payloads by reference are in front of this cursor */
	uint64_t stuck_tail;  /* where the peer's cursor stood when there was no room */
	uint64_t stuck_since; /* ns: since when it has stood there; 0: never */

	cacheline_aligned struct ring rx;
	bool frames;	      /* the last record that came was a frame */
	bool met;	      /* the peer's side is of our version */
	bool by_reference_ok; /* we have said once that we can read the peer's memory */
	struct pkt_foreign sender;
	struct channel *next; /* in the list of channels to tear down, or to use again */
	struct record_pkt in; /* the packet being delivered */
};

/* Maps the memory and introduces ourselves to the peer.  The caller keeps the descriptor. */
int channel_attach(struct channel *ch, uint16_t peer, int fd, size_t bytes, int side) must_check;
/* Called under the receive lock, when nobody can look the channel up any more. */
void channel_detach(struct channel *ch);

/* True: *verdict is WIRE_SENT and the peer must be told. */
bool channel_send(struct channel *ch, uint16_t peer, const struct pkt *p,
		  enum wire_verdict *verdict);
/* Takes tx_lock for a caller that fills records of the ring tx itself; channel_release ends that.
 * False: there is nothing to send through. */
bool channel_hold(struct channel *ch, uint16_t peer) must_check;

static inline void channel_release(struct channel *ch)
{
	spin_unlock(&ch->tx_lock);
}

/* False: channel_send would return WIRE_BUSY for this unreliable packet, until CHANNEL_ROOM is
 * told. */
bool channel_has_room(struct channel *ch, uint16_t peer, const struct pkt *p);
/*
 * Takes payloads by reference back.  After the return the peer delivers no payload of these that it
 * reads later, even if it is stopped in the middle of one.  True: the peer may be reading one just
 * now; after a revocation (reach/access.h) it no longer is.  Calls lost (may be NULL) under tx_lock
 * for each queue pair concerned.
 */
bool channel_withdraw(struct channel *ch, uint16_t peer, const struct record_refs *refs,
		      void (*lost)(void *user, uint32_t sqpn), void *user);
/* There was no room: waits a little while for the peer to take something.  False: the peer takes
 * nothing, or took nothing the last time and has taken nothing since. */
bool channel_room_soon(struct channel *ch, uint16_t peer) must_check;
/* Has the peer not taken all that was sent (up_to: as in ring_is_behind)?  The first true may only
 * mean that the peer has not said so yet: it says so when it looks next. */
bool channel_unread(struct channel *ch, uint16_t peer, uint64_t *up_to);
uint32_t channel_max_payload(struct channel *ch, bool by_reference_ok);

/* Called under the receive lock for an attached channel: does channel_drain have anything to do? */
bool channel_has_news(const struct channel *ch);
/* Called under the receive lock: the cursor up to which channel_drain has taken, and the one behind
 * all that may have come. */
uint64_t channel_taken_up_to(const struct channel *ch);
uint64_t channel_come_up_to(const struct channel *ch);

enum channel_news {
	CHANNEL_DELIVERED = 1 << 0,
	CHANNEL_MORE = 1 << 1,	    /* the budget is used up */
	CHANNEL_TELL_PEER = 1 << 2, /* there is room again, or an answer */
	CHANNEL_ROOM = 1 << 3,	    /* those who were told WIRE_BUSY may try again */
};

/* The functions that take what arrives. */
struct channel_sink {
	void (*packet)(void *user, const struct pkt *p);
	/* Takes the short SENDs of a record for that port.  Returns how many it has taken; the
	 * next one goes to packet. */
	uint32_t (*short_sends)(void *user, uint32_t dst_port, const struct short_send *b);
	void *user;
};

/*
 * Called under the receive lock: delivers records until the budget is used up, and returns enum
 * channel_news.  peer: through which the other process's memory is reached during the call; NULL:
 * that memory is out of reach.
 */
unsigned channel_drain(struct channel *ch, struct way_peer *peer, bool all,
		       const struct channel_sink *to);
