// SPDX-License-Identifier: BSD-2-Clause
/*
 * What processes have sent, by destination (wire/traffic.h), becomes counts of ports: of the port
 * that sent it and of switches' ports on the way.  The way is that of the present tables, so before
 * a change of tables, LIDs or links the caller has all counts settled.
 */
#include "fabric/daemon/fabric.h"

#include <string.h>
#include <sys/mman.h>

static struct traffic *slot_traffic(const struct fabric *f, uint32_t slot)
{
	return (struct traffic *)((char *)f->slots + registry_traffic_offset(slot));
}

struct traffic_sum {
	uint64_t words, packets;
};

static uint32_t cells_used(const struct traffic *w)
{
	return min_u32(atomic_load_explicit(&w->used, memory_order_acquire), TRAFFIC_CELLS);
}

/* Returns the port that sends there; SUBNET_NONE: the cell is not ready, or says what cannot be. */
static uint32_t cell_row(const struct fabric *f, uint64_t key)
{
	uint32_t row = traffic_key_row(key);

	if (!(key & TRAFFIC_TAKEN) || row >= f->subnet.nports || f->subnet.ports[row].ethernet ||
	    subnet_node_of(&f->subnet, row)->kind != SUBNET_HCA)
		return SUBNET_NONE;
	return row;
}

/* Returns what a cell has counted and nobody has settled. */
static struct traffic_sum cell_unsettled(const struct traffic *w, uint32_t cell)
{
	struct traffic_sum sum = {0};

	for (uint32_t shard = 0; shard < SLOT_THREAD_SHARDS; shard++) {
		const struct traffic_count *c = &w->count[shard][cell];

		sum.words += atomic_load_explicit(&c->words, memory_order_relaxed);
		sum.packets += atomic_load_explicit(&c->packets, memory_order_relaxed);
	}
	sum.words -= atomic_load_explicit(&w->settled[cell].words, memory_order_relaxed);
	sum.packets -= atomic_load_explicit(&w->settled[cell].packets, memory_order_relaxed);
	return sum;
}

static void count_add(_Atomic(uint64_t) *at, uint64_t n)
{
	/* A plain sum is enough, because there is one writer. */
	atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static void cell_settle(struct fabric *f, struct traffic *w, uint32_t cell)
{
	uint64_t key = atomic_load_explicit(&w->key[cell], memory_order_acquire);
	uint32_t row = cell_row(f, key);
	struct traffic_sum sum = cell_unsettled(w, cell);

	if (row == SUBNET_NONE || (!sum.words && !sum.packets))
		return;
	f->base[row][PORT_XMIT_DATA] += sum.words;
	f->base[row][PORT_XMIT_PACKETS] += sum.packets;
	net_carry(&f->net, row,
		  &(struct net_carried){.dlid = (uint16_t)key,
					.sl = traffic_key_sl(key),
					.pkey = traffic_key_pkey(key),
					.words = sum.words,
					.packets = sum.packets});
	count_add(&w->settled[cell].words, sum.words);
	count_add(&w->settled[cell].packets, sum.packets);
}

static void slot_settle_traffic(struct fabric *f, uint32_t slot)
{
	struct traffic *w = slot_traffic(f, slot);
	uint32_t used = cells_used(w);

	for (uint32_t cell = 0; cell < used; cell++)
		cell_settle(f, w, cell);
}

void traffic_settle(struct fabric *f)
{
	for (uint32_t i = 0; i < SLOT_WORDS; i++)
		for (uint64_t used = atomic_load(&f->registry->slots_used[i]); used;
		     used &= used - 1)
			slot_settle_traffic(f, i * 64 + (uint32_t)__builtin_ctzll(used));
}

static void cells_clear(struct traffic *w, uint32_t used)
{
	for (uint32_t shard = 0; shard < SLOT_THREAD_SHARDS; shard++)
		memset(w->count[shard], 0, used * sizeof(w->count[shard][0]));
	memset(w->settled, 0, used * sizeof(w->settled[0]));
	memset(w->key, 0, used * sizeof(w->key[0]));
	memset(w->index, 0, sizeof(w->index));
	atomic_store_explicit(&w->used, 0, memory_order_release);
}

void traffic_end(struct fabric *f, uint32_t slot)
{
	struct traffic *w = slot_traffic(f, slot);

	slot_settle_traffic(f, slot);
	/* Slots are used one after the other, so what each keeps would add up to many MiB. */
	if (madvise(w, sizeof(*w), MADV_REMOVE))
		cells_clear(w, cells_used(w));
}

/* Sums what one process has sent. */
static struct traffic_sum slot_sent(const struct fabric *f, uint32_t slot, uint32_t row)
{
	const struct traffic *w = slot_traffic(f, slot);
	uint32_t used = cells_used(w);
	struct traffic_sum sum = {0};

	for (uint32_t cell = 0; cell < used; cell++) {
		uint64_t key = atomic_load_explicit(&w->key[cell], memory_order_acquire);

		if (cell_row(f, key) == row) {
			struct traffic_sum more = cell_unsettled(w, cell);

			sum.words += more.words;
			sum.packets += more.packets;
		}
	}
	return sum;
}

uint64_t traffic_pending(const struct fabric *f, uint32_t row, enum port_counter counter)
{
	struct traffic_sum sum = {0};

	if (counter != PORT_XMIT_DATA && counter != PORT_XMIT_PACKETS)
		return 0;
	for (uint32_t i = 0; i < SLOT_WORDS; i++) {
		uint64_t used = atomic_load(&f->registry->slots_used[i]);

		for (; used; used &= used - 1) {
			struct traffic_sum more =
				slot_sent(f, i * 64 + (uint32_t)__builtin_ctzll(used), row);

			sum.words += more.words;
			sum.packets += more.packets;
		}
	}
	return counter == PORT_XMIT_DATA ? sum.words : sum.packets;
}
