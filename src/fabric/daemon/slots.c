// SPDX-License-Identifier: BSD-2-Clause
/*
 * Client processes: the slot of each, the numbers it owns, the memory it shares with peers, and
 * what happens to all this when the process is gone.
 */
#include "fabric/daemon/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory_file.h"
#include "fabric/daemon/descriptor.h"

#define NO_SLOT REGISTRY_SLOTS

static bool bit_test(const uint64_t *words, uint32_t bit)
{
	return words[bit / 64] >> (bit % 64) & 1;
}

static void bit_set(uint64_t *words, uint32_t bit)
{
	words[bit / 64] |= 1ull << (bit % 64);
}

static void bit_clear(uint64_t *words, uint32_t bit)
{
	words[bit / 64] &= ~(1ull << (bit % 64));
}

static bool bits_none(const uint64_t *words)
{
	for (uint32_t i = 0; i < SLOT_WORDS; i++)
		if (words[i])
			return false;
	return true;
}

/* ---- numbers ---- */

/* Puts all chunks from first to end into the list, beginning at one of them. */
static void numbers_init(struct numbers *n, uint32_t first, uint32_t end, uint32_t begin)
{
	for (n->count = 0; n->count < end - first; n->count++)
		n->fifo[n->count] = (uint16_t)(first + (begin + n->count) % (end - first));
}

static void number_put(struct numbers *n, uint32_t chunk)
{
	n->owner_plus_1[chunk] = 0;
	n->fifo[(n->head + n->count++) % REGISTRY_CHUNKS] = (uint16_t)chunk;
}

/* Brings one of the chunks to the head of the list. */
static void numbers_cut(struct numbers *n, uint32_t which)
{
	uint16_t *head = &n->fifo[n->head];
	uint16_t *other = &n->fifo[(n->head + which % n->count) % REGISTRY_CHUNKS];
	uint16_t chunk = *other;

	*other = *head;
	*head = chunk;
}

int64_t slot_numbers(struct fabric *f, uint32_t slot, uint32_t kind)
{
	struct numbers *n;
	uint32_t chunk, begin = 0;

	if (kind >= NUMBER_KINDS)
		return -EINVAL;
	n = &f->numbers[kind];
	if (!n->count)
		return -ENOSPC;
	if (f->numbers_random) {
		uint32_t random[2];

		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return -errno;
		numbers_cut(n, random[0]);
		begin = random[1] % (1u << REGISTRY_CHUNK_SHIFT);
	}
	chunk = n->fifo[n->head];
	n->head = (n->head + 1) % REGISTRY_CHUNKS;
	n->count--;
	n->owner_plus_1[chunk] = (uint16_t)(slot + 1);
	if (kind == NUMBER_QPN)
		atomic_store_explicit(&f->registry->qpn_slot_plus_1[chunk], (uint16_t)(slot + 1),
				      memory_order_release);
	return (int64_t)chunk << REGISTRY_CHUNK_SHIFT | begin;
}

static void numbers_release(struct fabric *f, uint32_t slot)
{
	bool routes = false;

	for (uint32_t kind = 0; kind < NUMBER_KINDS; kind++) {
		struct numbers *n = &f->numbers[kind];

		for (uint32_t chunk = 0; chunk < REGISTRY_CHUNKS; chunk++) {
			if (n->owner_plus_1[chunk] != slot + 1)
				continue;
			if (kind == NUMBER_QPN) {
				atomic_store_explicit(&f->registry->qpn_slot_plus_1[chunk], 0,
						      memory_order_release);
				routes = true;
			}
			number_put(n, chunk);
		}
	}
	/* Processes may remember that these numbers lead to the slot. */
	if (routes)
		subnet_raise_epoch(&f->subnet);
}

/* ---- slots ---- */

static void free_list_append(struct fabric *f, uint32_t slot)
{
	f->rows[slot].state = SLOT_FREE;
	f->rows[slot].next_free = NO_SLOT;
	if (f->free_head == NO_SLOT)
		f->free_head = (uint16_t)slot;
	else
		f->rows[f->free_tail].next_free = (uint16_t)slot;
	f->free_tail = (uint16_t)slot;
}

void slots_init(struct fabric *f)
{
	f->free_head = NO_SLOT;
	for (uint32_t i = 0; i < REGISTRY_SLOTS; i++)
		free_list_append(f, i);
	/* Chunk 0 of each kind holds the reserved numbers: QP 0 and 1, mkey index 0.  The last QPN
	 * chunk holds the multicast QPN. */
	numbers_init(&f->numbers[NUMBER_QPN], 1, REGISTRY_CHUNKS - 1, f->first_number);
	for (uint32_t kind = NUMBER_QPN + 1; kind < NUMBER_KINDS; kind++)
		numbers_init(&f->numbers[kind], 1, REGISTRY_CHUNKS, f->first_number);
}

int slot_take(struct fabric *f, uint32_t host, pid_t pid)
{
	uint32_t i = f->free_head;
	struct slot_row *row;
	struct slot *s;

	if (i == NO_SLOT)
		return -ENOSPC;
	row = &f->rows[i];
	f->free_head = row->next_free;
	row->state = SLOT_TAKEN;
	row->host = host;
	row->pid = pid;
	if (!++row->generation)
		row->generation = 1; /* 0 means free */
	s = &f->slots[i];
	memset(s, 0, sizeof(*s));
	s->pid = pid;
	if (fault_observes(f))
		atomic_store(&s->observers, SLOT_HAS_FAULTS);
	atomic_store_explicit(&f->registry->slot_host_plus_1[i], host + 1, memory_order_release);
	atomic_store_explicit(&s->alive, row->generation, memory_order_release);
	atomic_fetch_or(&f->registry->slots_used[i / 64], 1ull << i % 64);
	return (int)i;
}

static void counters_fold(struct fabric *f, uint32_t slot)
{
	uint32_t host = f->rows[slot].host;
	uint32_t row = f->hosts[host].first_port;

	for (uint32_t port = 0; port < f->topology.hosts[host].nports; port++)
		for (uint32_t c = 0; c < PORT_COUNTERS; c++)
			for (uint32_t shard = 0; shard < SLOT_SHARDS; shard++)
				f->base[row + port][c] += atomic_exchange(
					&f->slots[slot].counters[shard][port][c], 0);
}

static uint64_t slot_count(const struct slot *s, uint32_t port, enum port_counter counter)
{
	uint64_t total = 0;

	for (uint32_t shard = 0; shard < SLOT_SHARDS; shard++)
		total += atomic_load_explicit(&s->counters[shard][port][counter],
					      memory_order_relaxed);
	return total;
}

uint64_t port_counter_stored(const struct fabric *f, uint32_t row, enum port_counter counter)
{
	uint32_t host = subnet_node_of(&f->subnet, row)->host;
	uint32_t port = f->subnet.ports[row].host_index;
	uint64_t total = f->base[row][counter] + traffic_pending(f, row, counter);

	for (uint32_t w = 0; w < SLOT_WORDS; w++) {
		uint64_t used = atomic_load(&f->registry->slots_used[w]);

		for (; used; used &= used - 1) {
			uint32_t slot = w * 64 + (uint32_t)__builtin_ctzll(used);

			if (f->rows[slot].host == host)
				total += slot_count(&f->slots[slot], port, counter);
		}
	}
	return total;
}

static uint64_t port_count(const struct fabric *f, uint32_t row, enum port_counter counter)
{
	return port_counter_stored(f, row, counter) + net_own(&f->net, row, counter);
}

uint64_t port_counter_total(const struct fabric *f, uint32_t row, enum port_counter counter)
{
	switch (counter) {
	case PORT_UNICAST_XMIT_PACKETS:
		return port_count(f, row, PORT_XMIT_PACKETS) -
		       port_count(f, row, PORT_MULTICAST_XMIT_PACKETS);
	case PORT_UNICAST_RCV_PACKETS:
		return port_count(f, row, PORT_RCV_PACKETS) -
		       port_count(f, row, PORT_MULTICAST_RCV_PACKETS);
	default:
		return port_count(f, row, counter);
	}
}

static void channel_drop(struct fabric *f, uint32_t a, uint32_t b)
{
	uint32_t low = a < b ? a : b;
	uint32_t high = a < b ? b : a;

	descriptor_put(f->rows[low].channel[high]);
	f->rows[low].channel[high] = -1;
	bit_clear(f->rows[a].peers, b);
	bit_clear(f->rows[b].peers, a);
}

static void slot_settle(struct fabric *f, uint32_t slot)
{
	if (f->rows[slot].state == SLOT_DRAINING && bits_none(f->rows[slot].acks_due))
		free_list_append(f, slot);
}

void slot_acked(struct fabric *f, uint32_t slot, uint32_t peer)
{
	if (peer >= REGISTRY_SLOTS || !bit_test(f->rows[peer].acks_due, slot))
		return;
	bit_clear(f->rows[peer].acks_due, slot);
	slot_settle(f, peer);
}

void slot_debts(const struct fabric *f, uint32_t debts[REGISTRY_SLOTS])
{
	memset(debts, 0, REGISTRY_SLOTS * sizeof(*debts));
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++)
		for (uint32_t w = 0; f->rows[slot].state == SLOT_DRAINING && w < SLOT_WORDS; w++)
			for (uint64_t due = f->rows[slot].acks_due[w]; due; due &= due - 1)
				debts[w * 64 + (uint32_t)__builtin_ctzll(due)]++;
}

void slot_release(struct fabric *f, uint32_t slot, const struct slot_notes *notes)
{
	struct slot_row *row = &f->rows[slot];

	traffic_end(f, slot);
	/* Releases its numbers first, so that nobody sends to it any more; then the slot. */
	numbers_release(f, slot);
	atomic_fetch_and(&f->registry->slots_used[slot / 64], ~(1ull << slot % 64));
	atomic_store_explicit(&f->slots[slot].alive, 0, memory_order_release);
	atomic_fetch_add(&f->registry->ends, 1);
	counters_fold(f, slot);
	fault_fold(f, slot);
	row->state = SLOT_DRAINING;
	for (uint32_t peer = 0; peer < REGISTRY_SLOTS; peer++) {
		if (bit_test(row->peers, peer)) {
			channel_drop(f, slot, peer);
			bit_set(row->acks_due, peer);
			notes->gone(notes->user, peer, slot);
		}
		/* A process that has ended will not acknowledge any more that others have. */
		slot_acked(f, slot, peer);
	}
	free(row->channel);
	row->channel = NULL;
	slot_settle(f, slot);
}

/* ---- channels ---- */

static int channel_create(struct slot_row *low, uint32_t high)
{
	int fd, ret;

	if (!low->channel) {
		low->channel = malloc(REGISTRY_SLOTS * sizeof(*low->channel));
		if (!low->channel)
			return -ENOMEM;
		for (uint32_t i = 0; i < REGISTRY_SLOTS; i++)
			low->channel[i] = -1;
	}
	fd = memfd_create("softhca-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	ret = memory_file_resize(fd, FABRIC_CHANNEL_BYTES);
	if (ret) {
		close(fd);
		return ret;
	}
	/* The seals keep either side from making the other's mapping fault. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	low->channel[high] = fd;
	return fd;
}

int slot_channel(struct fabric *f, uint32_t slot, uint32_t peer, bool *fresh)
{
	uint32_t low = slot < peer ? slot : peer;
	uint32_t high = slot < peer ? peer : slot;
	int fd;

	if (peer >= REGISTRY_SLOTS || peer == slot)
		return -EINVAL;
	if (f->rows[peer].state != SLOT_TAKEN)
		return -ENOTCONN;
	*fresh = !bit_test(f->rows[slot].peers, peer);
	if (!*fresh)
		return f->rows[low].channel[high];
	fd = channel_create(&f->rows[low], high);
	if (fd < 0)
		return fd;
	bit_set(f->rows[slot].peers, peer);
	bit_set(f->rows[peer].peers, slot);
	return fd;
}
