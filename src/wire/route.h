/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process gets what a port sends to (port, QP number).
 *
 * A number is no address: chunks of numbers have owners, but a packet arrives only if the owner is
 * on the host of the port that the packet is addressed to, and if links and the tables of switches
 * lead there.  What a port sends whose cable leads out of the fabric belongs to the process that
 * carries it there, whatever number it is for.  That takes a
 * walk through the subnet and the registry.  A connection remembers the answer, in one word: the
 * epoch of the walk, the number and the owner; so asking again costs a load and a compare.  It does
 * not remember that there is no way: a way may appear without a new epoch, when somebody gets a
 * number.
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

/* What the word of a connection says if the route to dqpn was walked in this epoch, less the
 * owner. */
static inline uint64_t route_key(uint64_t epoch, uint32_t dqpn)
{
	return (epoch << ROUTE_QPN_BITS | (dqpn & IB_QPN_MASK)) << ROUTE_OWNER_BITS;
}

/* Does it remember that the connection's peer is in this process? */
static inline bool route_leads_here(const struct route *route, uint64_t epoch)
{
	return atomic_load_explicit(&route->here, memory_order_relaxed) == epoch;
}

/* Or in another one? */
static inline bool route_leads_away(const struct route *route, uint64_t epoch)
{
	return atomic_load_explicit(&route->away, memory_order_relaxed) == epoch;
}

/* The slot that the path's peer belongs to, plus one; 0: that is not remembered of this epoch. */
static inline uint32_t route_known(const struct path *path, uint64_t epoch, uint32_t dqpn)
{
	uint64_t key = route_key(epoch, dqpn), word;

	if (unlikely(!path->route))
		return 0;
	word = atomic_load_explicit(&path->route->word, memory_order_relaxed);
	return likely((word ^ key) <= ROUTE_OWNER_MASK) ? (uint32_t)word & ROUTE_OWNER_MASK : 0;
}

/* When the path or the peer's number changes; nobody may be sending on it. */
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
/* The same if a way from the port along the path leads there, else 0.  Remembers nothing. */
uint32_t route_walk(const struct wire *w, const struct path *path, uint32_t dqpn);
/* The same, from the path's memory if that is of the present epoch; else walks and remembers. */
uint32_t route_owner_plus_1(const struct wire *w, const struct path *path, uint32_t dqpn);
/* Does the way to the path's peer, which has that number, end in this process?  Remembers too. */
bool route_here(const struct wire *w, const struct path *path, uint32_t dqpn);
/* Does a switch's port on the way not let its P_Key pass? */
bool route_is_refused(const struct wire *w, const struct path *path) must_check;
/* Which process at the port has that number, plus one; 0: none.  For what comes from outside. */
uint32_t route_owner_at(const struct wire *w, uint32_t dqpn);
/* For traces. */
const char *route_missing(const struct wire *w, const struct path *path, uint32_t dqpn);
