/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process gets what a port sends to (port, QP number).
 *
 * A number is no address: chunks of numbers have owners, but a packet arrives only if the owner is
 * on the host of the port that the packet is addressed to, and if links and the tables of switches
 * lead there.  If a port's cable leads out of the fabric, the process that carries its packets
 * there gets them all, whatever their number.  To find the owner, the route walks through the
 * subnet and the registry.  A connection remembers the answer in one word: the epoch of the walk,
 * the number and the owner; so asking again costs a load and a compare.  It does not remember that
 * there is no way, because a way may appear without a new epoch, when somebody gets a number.
 */
#pragma once

#include <assert.h>

#include "subnet/subnet.h"
#include "wire/pkt.h"
#include "registry/registry.h"

#define ROUTE_OWNER_BITS 11u
#define ROUTE_QPN_BITS	 24u
#define ROUTE_OWNERS	 (1u << ROUTE_OWNER_BITS)
#define ROUTE_OWNER_MASK (ROUTE_OWNERS - 1)

static_assert(REGISTRY_SLOTS <= ROUTE_OWNER_MASK, "an owner is a slot plus one");

struct wire;

/* The word of a connection, less the owner, if the walk to dqpn was in this epoch. */
static inline uint64_t route_key(uint64_t epoch, uint32_t dqpn)
{
	return (epoch << ROUTE_QPN_BITS | (dqpn & IB_QPN_MASK)) << ROUTE_OWNER_BITS;
}

/* True if the route remembers that the connection's peer is in this process. */
static inline bool route_leads_here(const struct route *route, uint64_t epoch)
{
	return atomic_load_explicit(&route->here, memory_order_relaxed) == epoch;
}

/* True if the route remembers that the peer is in another process. */
static inline bool route_leads_away(const struct route *route, uint64_t epoch)
{
	return atomic_load_explicit(&route->away, memory_order_relaxed) == epoch;
}

/* The slot that the path's peer belongs to, plus one; 0: the route does not remember it in this
 * epoch. */
static inline uint32_t route_known(const struct path *path, uint64_t epoch, uint32_t dqpn)
{
	uint64_t key = route_key(epoch, dqpn), word;

	if (unlikely(!path->route))
		return 0;
	word = atomic_load_explicit(&path->route->word, memory_order_relaxed);
	return likely((word ^ key) <= ROUTE_OWNER_MASK) ? (uint32_t)word & ROUTE_OWNER_MASK : 0;
}

/* Call it when the path or the peer's number changes, while nobody sends on the path. */
static inline void route_forget(struct route *route)
{
	atomic_store_explicit(&route->word, 0, memory_order_relaxed);
	atomic_store_explicit(&route->here, 0, memory_order_relaxed);
	atomic_store_explicit(&route->away, 0, memory_order_relaxed);
	atomic_store_explicit(&route->traffic, 0, memory_order_relaxed);
	atomic_store_explicit(&route->traffic_back, 0, memory_order_relaxed);
}

/* The slot that owns a number plus one, wherever it is; 0: none. */
uint32_t route_number_owner_plus_1(const struct registry *r, uint32_t qpn);
/* The same if a way leads there from the port along the path, else 0.  Remembers nothing. */
uint32_t route_walk(const struct wire *w, const struct path *path, uint32_t dqpn);
/* The same, but takes the answer from the route if it is of the present epoch; otherwise walks and
 * remembers. */
uint32_t route_owner_plus_1(const struct wire *w, const struct path *path, uint32_t dqpn);
/* True if the way to the path's peer, which has that number, ends in this process.  Remembers the
 * answer, too. */
bool route_here(const struct wire *w, const struct path *path, uint32_t dqpn);
/* True if the port's cable leads out of the fabric and the path leads to another port. */
bool route_leads_out(const struct wire *w, const struct path *path) must_check;
/* The process that carries what the port sends out of the fabric, plus one; 0: there is none. */
uint32_t route_carrier(const struct wire *w) must_check;
/* True if a switch's port on the way does not let the path's P_Key pass. */
bool route_is_refused(const struct wire *w, const struct path *path) must_check;
/* The process at the port that has the number, plus one; 0: none.  For packets from outside. */
uint32_t route_owner_at(const struct wire *w, uint32_t dqpn);
/* Says for traces why no way leads there. */
const char *route_missing(const struct wire *w, const struct path *path, uint32_t dqpn);
