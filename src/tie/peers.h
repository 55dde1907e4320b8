/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a carrier notes of each machine that its port exchanges packets with (registry/tied_peers.h).
 * The cost of a packet does not depend on how many there are: a hash leads to the row, and a key by
 * chance keeps senders from choosing addresses that meet there.
 *
 * Two threads write, one what goes out and one what comes in.  Each count has one writer.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/descriptor.h"
#include "registry/registry.h"
#include "registry/tied_peers.h"
#include "wire/pkt.h"

#define PEERS_INDEX (2 * TIED_PEERS) /* a power of two */
#define PEER_FLOWS  4096u	     /* a power of two */

/*
 * The numbers of requests of a queue pair of ours that go out, or of those that come to it.  If two
 * queue pairs want the same place, the later one gets it, and repetitions of the other go unseen.
 */
struct peer_flow {
	_Atomic(uint32_t) qpn; /* 0: none */
	uint32_t next;	       /* the PSN behind the last request */
	/* The request whose answer is waited for to measure the time; plus 1; 0: none.  Requests
	 * that go out. */
	_Atomic(uint32_t) asked_plus_1;
	_Atomic(uint64_t) asked_ns;
};

struct peers {
	struct tied_peers *mem;
	struct hidden file;
	uint64_t key[2];
	pthread_mutex_t lock;	  /* for whoever makes a row */
	_Atomic(uint16_t) *index; /* row plus 1 */
	struct peer_flow out[PEER_FLOWS], in[PEER_FLOWS];
};

/* Begins, and says so in the carrier's slot.  0 or a negative errno. */
int peers_open(struct peers *p, struct slot *slot) must_check;
void peers_close(struct peers *p, struct slot *slot);
/* The row of an address, made if there is none.  NULL: no row is left. */
struct tied_peer *peers_find(struct peers *p, const union ib_gid *gid) must_check;

static inline void peer_add(struct tied_peer *t, enum tied_peer_count what, uint64_t n)
{
	uint64_t before = atomic_load_explicit(&t->count[what], memory_order_relaxed);

	atomic_store_explicit(&t->count[what], before + n, memory_order_relaxed);
}

/* Notes a packet that is about to go out, by the thread that sends. */
void peers_send(struct peers *p, struct tied_peer *t, const struct pkt *pkt);
/* Notes a packet that has come in at that time, by the thread that takes. */
void peers_take(struct peers *p, struct tied_peer *t, const struct pkt *pkt, uint64_t now_ns);
