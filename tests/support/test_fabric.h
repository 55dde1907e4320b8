/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric without a daemon, in memory that a forked child shares:
 *
 *      slot 0 (port row 0) ---- channel ---- slot 1 (port row 1)
 *
 * Slot s owns the QP numbers from (s + 1) * 1024 on.  Each has a host of its
 * own.  Both ports are active.
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exposure/expose.h"
#include "registry/registry.h"
#include "wire/wire.h"
#include "check.h"
#include "test_life.h"
#include "test_slots.h"
#include "test_subnet.h"

#define TEST_FABRIC_CHANNEL_BYTES (1u << 20)
#define TEST_FABRIC_PORTS	  2u

struct test_fabric {
	struct registry *registry;
	struct subnet subnet;
	struct slot *slots;
	int channel_fd;
	_Atomic(uint32_t) opened; /* calls of open_channel */
	bool refuse;		  /* open_channel fails */
	/* What happens between the daemon's answer to open_channel and its use.  May be NULL. */
	void (*meanwhile)(struct test_fabric *b);
	/* What processes that come up give to the daemon.  May be NULL. */
	bool (*send_gsi)(void *user, const struct gsi_datagram *d);
	struct traffic *traffic; /* of processes that come up */
	bool expose;		 /* processes that come up lay memory open */
};

/* One process of it. */
struct test_process {
	struct test_fabric *fabric;
	uint16_t slot;
	struct wire_process *host;
	struct wire *wire;
	struct path path; /* to the other */
	struct test_life life;
};

static inline uint32_t test_fabric_qpn(uint16_t slot)
{
	return (slot + 1u) << REGISTRY_CHUNK_SHIFT;
}

static inline void *test_fabric_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static inline void test_fabric_new_channel(struct test_fabric *b)
{
	b->channel_fd = memfd_create("channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(b->channel_fd >= 0 && !ftruncate(b->channel_fd, TEST_FABRIC_CHANNEL_BYTES));
}

static inline struct test_fabric *test_fabric_create(void)
{
	struct test_fabric *b = test_fabric_shared(sizeof(*b));

	b->registry = test_fabric_shared(sizeof(*b->registry));
	b->slots = test_slots_map();
	test_subnet_open(&b->subnet, TEST_FABRIC_PORTS);
	for (uint16_t s = 0; s < TEST_FABRIC_PORTS; s++) {
		test_subnet_port(&b->subnet, s, 0, false);
		atomic_store(&b->registry->slot_host_plus_1[s], s + 1u);
		atomic_store(&b->registry->qpn_slot_plus_1[s + 1], (uint16_t)(s + 1));
		atomic_store(&b->slots[s].alive, 1);
	}
	test_fabric_new_channel(b);
	return b;
}

static inline int test_fabric_open_channel(void *user, uint16_t peer, int *fd, size_t *bytes,
					   int *side)
{
	struct test_process *st = user;

	atomic_fetch_add(&st->fabric->opened, 1);
	if (st->fabric->refuse || peer > 1 || peer == st->slot)
		return -ENOENT;
	*fd = dup(st->fabric->channel_fd);
	*bytes = TEST_FABRIC_CHANNEL_BYTES;
	*side = st->slot > peer;
	if (st->fabric->meanwhile)
		st->fabric->meanwhile(st->fabric);
	return 0;
}

static inline void test_process_up(struct test_process *st, struct test_fabric *b, uint16_t slot,
				   void (*receive)(void *user, const struct pkt *p), void *user)
{
	struct wire_process_attr attr = {
		.registry = b->registry,
		.subnet = &b->subnet,
		.slots = b->slots,
		.slot = slot,
		.traffic = b->traffic,
		.open_channel = test_fabric_open_channel,
		.send_gsi = b->send_gsi,
		.expose = b->expose,
		.user = st,
	};
	struct wire_client client = {.receive = receive, .user = user};

	*st = (struct test_process){.fabric = b, .slot = slot};
	b->slots[slot].pid = getpid();
	CHECK(!wire_process_create(&attr, &st->host));
	CHECK(!wire_create(st->host, slot, &st->wire));
	wire_attach(st->wire, &client);
	st->path.src_port = slot;
	st->path.dst_port = !slot;
}

/* What the daemon would do when the other side has opened the channel. */
static inline void test_process_add_channel(struct test_process *st)
{
	CHECK(!wire_process_add_channel(st->host, !st->slot, dup(st->fabric->channel_fd),
					TEST_FABRIC_CHANNEL_BYTES, st->slot == 1));
}

/* From now on the other may read what it sends by reference. */
static inline void test_process_live(struct test_process *st)
{
	test_life_begin(&st->life, &wire_process_expose(st->host)->mem->alive);
}

static inline void test_process_down(struct test_process *st)
{
	if (atomic_load(&st->life.lives))
		test_life_end(&st->life);
	wire_attach(st->wire, NULL);
	wire_destroy(st->wire);
	wire_process_destroy(st->host);
}

static inline uint64_t test_process_counter(struct test_process *st, enum port_counter c)
{
	const _Atomic(uint64_t) *shard = wire_counters(st->wire);
	uint64_t n = 0;

	for (unsigned i = 0; i < SLOT_SHARDS; i++, shard += SLOT_PORTS * PORT_COUNTERS)
		n += atomic_load(&shard[c]);
	return n;
}
