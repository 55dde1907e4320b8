/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port sends, by destination.
 *
 * Data passes no daemon and no switch, yet each switch's port on the way shows what it has carried.
 * So a port of InfiniBand counts what it sends in a cell of its processfor the LID and the service
 * level that it sends to, instead of among its counters.  The daemon adds the cells up: for the port itself, and, along the
 * tables of switches, for every port on the way (fabric/daemon/traffic.c).  That costs the sender what
 * the counters would.
 *
 * Whoever executes a request at the peer himself counts the peer's answer too, in a cell of his own
 * process: as sent by the peer's port.
 */
#pragma once

#include "base/compiler.h"
#include "registry/registry.h"
#include "wire/counter_shard.h"
#include "wire/pkt.h"

#define TRAFFIC_NONE UINT32_MAX /* all cells are taken */

/* The cell plus one for what goes along the path, or comes back along it; TRAFFIC_NONE.  The connection
 * remembers it. */
uint32_t traffic_find(struct traffic *f, const struct path *path);
uint32_t traffic_find_back(struct traffic *f, const struct path *path);

/* The same where f may be NULL, from the path's memory as a rule. */
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

/* And for packets of the path that a switch's port, for their P_Key, does not let pass: for the daemon alone to tell which
 * port that is. */
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

/* Counts what has left a port along the path; counters: those of the port in shard 0. */
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
