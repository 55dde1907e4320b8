/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port sends, counted by destination.
 *
 * Data passes no daemon and no switch, yet each switch's port on the way shows what it has carried.
 * So an InfiniBand port does not count what it sends in its own counters, but in a cell of its
 * process for the destination LID and the service level.  The daemon adds the cells up, for the
 * port itself and, along the tables of switches, for every port on the way
 * (fabric/daemon/traffic.c).  A cell costs the sender as much as the counters would.
 *
 * A process that executes a request in the peer's memory itself also counts the peer's answer, in a
 * cell of its own that says that the peer's port has sent it.
 */
#pragma once

#include "base/compiler.h"
#include "registry/registry.h"
#include "wire/counter_shard.h"
#include "wire/pkt.h"

#define TRAFFIC_NONE UINT32_MAX /* all cells are taken */

/* Finds or takes the cell for what the port sends along the path (or for what comes back along it),
 * and stores it in the path's route, if there is one.  Returns the cell plus one, or
 * TRAFFIC_NONE. */
uint32_t traffic_find(struct traffic *f, const struct path *path);
uint32_t traffic_find_back(struct traffic *f, const struct path *path);

/* These take the cell from the path's route if it is known there.  f may be NULL. */
static inline uint32_t traffic_there(struct traffic *f, const struct path *path)
{
	uint32_t cell = f && path->route
				? atomic_load_explicit(&path->route->traffic, memory_order_relaxed)
				: 0;

	if (likely(cell))
		return cell;
	return f ? traffic_find(f, path) : TRAFFIC_NONE;
}

static inline uint32_t traffic_back(struct traffic *f, const struct path *path)
{
	uint32_t cell = f && path->route ? atomic_load_explicit(&path->route->traffic_back,
								memory_order_relaxed)
					 : 0;

	if (likely(cell))
		return cell;
	return f ? traffic_find_back(f, path) : TRAFFIC_NONE;
}

/* The cell for packets of the path whose P_Key a switch's port does not let pass.  Only the daemon
 * can tell which port that is. */
uint32_t traffic_find_refused(struct traffic *f, const struct path *path);

static inline void traffic_add(struct traffic *f, uint32_t cell_plus_1, uint64_t words,
			       uint64_t packets)
{
	unsigned shard = likely(shard_plus_1) ? shard_plus_1 - 1 : shard_take();
	struct traffic_count *c = &f->count[shard][cell_plus_1 - 1];

	if (likely(shard)) {
		shard_add_at(&c->words, words);
		shard_add_at(&c->packets, packets);
	} else {
		atomic_fetch_add_explicit(&c->words, words, memory_order_relaxed);
		atomic_fetch_add_explicit(&c->packets, packets, memory_order_relaxed);
	}
}

/* Counts what has left a port along the path; counters: the port's own, in shard 0. */
static inline void traffic_sent(struct traffic *f, _Atomic(uint64_t) *counters,
				const struct path *path, uint64_t words, uint64_t packets)
{
	uint32_t cell = traffic_there(f, path);

	if (likely(cell != TRAFFIC_NONE)) {
		traffic_add(f, cell, words, packets);
		return;
	}
	shard_count(counters, PORT_XMIT_DATA, words);
	shard_count(counters, PORT_XMIT_PACKETS, packets);
}
