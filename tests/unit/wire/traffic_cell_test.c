// SPDX-License-Identifier: BSD-2-Clause
/* What ports send, by destination: cells, and who counts in them. */
#include "wire/traffic.h"

#include <sys/mman.h>

#include "test_fabric.h"
#include "wire/route.h"

static struct traffic *traffic;
static struct test_process a;

static void cells_empty(void)
{
	if (traffic)
		munmap(traffic, sizeof(*traffic));
	traffic = test_fabric_shared(sizeof(*traffic));
}

static uint64_t words_of(uint32_t row, uint16_t dlid)
{
	uint64_t words = 0;

	for (uint32_t cell = 0; cell < traffic->used; cell++)
		for (uint32_t shard = 0; shard < SLOT_THREAD_SHARDS; shard++)
			if (traffic->key[cell] == traffic_key(row, dlid, 0, 0))
				words += traffic->count[shard][cell].words;
	return words;
}

/* One cell for each destination; a connection remembers its two. */
static void test_cells(void)
{
	struct route route = {0};
	struct path path = {.src_port = 1, .dst_port = 2, .slid = 10, .dlid = 20, .route = &route};
	uint32_t there = traffic_there(traffic, &path), back = traffic_back(traffic, &path);
	struct path datagram = path;

	CHECK(there != back && traffic->used == 2);
	CHECK(traffic->key[there - 1] == traffic_key(1, 20, 0, 0) &&
	      traffic->key[back - 1] == traffic_key(2, 10, 0, 0));
	CHECK(route.traffic == there && route.traffic_back == back);
	datagram.route = NULL;
	CHECK(traffic_there(traffic, &datagram) == there &&
	      traffic_back(traffic, &datagram) == back);
	path.dlid = 21;
	CHECK(traffic_there(traffic, &path) == there);
	route_forget(&route);
	CHECK(traffic_there(traffic, &path) != there && traffic->used == 3);
	CHECK(traffic_there(NULL, &path) == TRAFFIC_NONE &&
	      traffic_back(NULL, &path) == TRAFFIC_NONE);
}

/* Those for whom there is no cell count among the counters of the port. */
static void test_full(void)
{
	_Atomic(uint64_t) counters[SLOT_THREAD_SHARDS * SLOT_PORTS * PORT_COUNTERS] = {0};
	struct path path = {.src_port = 1};
	uint64_t sum = 0;

	for (uint16_t lid = 1; lid <= TRAFFIC_CELLS + 5; lid++) {
		path.dlid = lid;
		traffic_sent(traffic, counters, &path, lid, 1);
	}
	CHECK(traffic->used == TRAFFIC_CELLS);
	for (uint16_t lid = 1; lid <= TRAFFIC_CELLS; lid++)
		CHECK(words_of(1, lid) == lid);
	for (uint32_t shard = 0; shard < SLOT_THREAD_SHARDS; shard++)
		sum += counters[shard * SLOT_PORTS * PORT_COUNTERS + PORT_XMIT_DATA];
	CHECK(sum == 5 * TRAFFIC_CELLS + 1 + 2 + 3 + 4 + 5);
}

static void receive_packet(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
}

/* A packet counts once as sent: by its destination where there are traffic. */
static void test_packets(struct test_fabric *fabric)
{
	struct path self = {.dlid = 5};
	struct pkt p = {
		.opcode = BTH_RC | BTH_SEND_ONLY,
		.dqpn = test_fabric_qpn(0) + 5,
		.npkts = 1,
		.path = &self,
	};

	fabric->traffic = traffic;
	test_process_up(&a, fabric, 0, receive_packet, &a);
	CHECK(wire_xmit(a.wire, &p) == WIRE_SENT);
	CHECK(words_of(0, 5) == 24 / 4);
	CHECK(!test_process_counter(&a, PORT_XMIT_DATA));
	CHECK(!test_process_counter(&a, PORT_XMIT_PACKETS));
	CHECK(test_process_counter(&a, PORT_RCV_DATA) == 24 / 4);
	test_process_down(&a);
}

int main(void)
{
	cells_empty();
	test_cells();
	cells_empty();
	test_full();
	cells_empty();
	test_packets(test_fabric_create());
	return 0;
}
