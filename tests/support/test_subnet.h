/* SPDX-License-Identifier: BSD-2-Clause */
/* A small subnet of a test's own, in memory that forked children share.  The test plays the
 * daemon. */
#pragma once

#include <stdio.h>
#include <sys/mman.h>

#include "check.h"
#include "subnet/subnet.h"

#define SUBNET_BED_GIDS 8u /* room of each port */

/* Room for that many ports, and as many HCAs at most. */
static inline void test_subnet_open(struct subnet *s, uint32_t ports)
{
	const struct subnet_shape shape = {ports, ports, ports * SUBNET_BED_GIDS};
	void *p = mmap(NULL, subnet_bytes(&shape), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	subnet_format(s, p, &shape);
}

static inline void test_subnet_close(struct subnet *s)
{
	munmap(s->head, s->head->bytes);
}

/* The next device of a host, whose ports are active; the row of the first. */
static inline uint32_t test_subnet_hca(struct subnet *s, uint32_t host, uint32_t device,
				       uint32_t nports, bool ethernet)
{
	uint32_t row = s->nports;
	struct subnet_node node = {
		.kind = SUBNET_HCA,
		.host = host,
		.nports = nports,
		.guid = 0x0200000000000001ull + row,
		.system_guid = 0x0200000000000001ull + row - device,
		.device = device,
	};

	snprintf(node.name, sizeof(node.name), "mlx5_%u", device);
	CHECK(subnet_add_node(s, &node, ethernet, SUBNET_BED_GIDS) >= 0);
	for (uint32_t i = 0; i < nports; i++) {
		s->ports[row + i].host_index = device + i;
		s->ports[row + i].guid = node.guid + i;
		atomic_store(&s->ports[row + i].pkeys[0], SUBNET_PKEY_DEFAULT);
		CHECK(subnet_set_state(s, row + i, IB_PORT_ACTIVE));
	}
	return row;
}

static inline uint32_t test_subnet_port(struct subnet *s, uint32_t host, uint32_t device,
					bool ethernet)
{
	return test_subnet_hca(s, host, device, 1, ethernet);
}

static inline void test_subnet_lid(struct subnet *s, uint32_t row, uint16_t lid)
{
	uint32_t owner;

	CHECK(!subnet_set_lid(s, row, lid, 0, &owner));
}

/* fe80::n as the port's GID 0. */
static inline void test_subnet_gid(struct subnet *s, uint32_t row, uint8_t n, enum gid_type type)
{
	const struct subnet_gid_entry entry = {{.raw = {0xfe, 0x80, [15] = n}}, type};
	uint32_t owner;

	CHECK(!subnet_set_gid(s, row, 0, &entry, &owner));
}

static inline union ib_gid test_subnet_gid_of(const struct subnet *s, uint32_t row)
{
	struct subnet_gid_entry entry;

	CHECK(subnet_gid(s, row, 0, &entry));
	return entry.gid;
}
