// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stands for the client library of the daemon (fabric/client/client.h): a fabric of one host and
 * one process, in plain memory.  Linked instead of it, so that the whole driver runs without a
 * daemon.
 */
#include "fabric/client/client.h"

#include <errno.h>
#include <string.h>

#include "fuzz.h"

#define PORTS	  2u
#define FIRST_LID 1u

struct fabric_client {
	struct registry *registry;
	struct slot *slots;
	uint32_t next_chunk[NUMBER_KINDS];
};

static struct fabric_client client;

static void add_port(struct registry *r, uint32_t row)
{
	struct registry_port *p = &r->ports[row];
	union ib_gid gid = {.raw = {0xfe, 0x80, [8] = 2, [15] = (uint8_t)(row + 1)}};
	uint32_t h = registry_gid_hash(&gid);

	snprintf(p->hca, sizeof(p->hca), "mlx5_%u", row);
	p->ethernet = row;
	p->node_guid = p->port_guid = 0x0200000000000001ull + row;
	p->pkeys[0] = 0xffff;
	p->gids[0] = (struct registry_gid){
		.gid = gid, .type = p->ethernet ? GID_ROCE_V2 : GID_IB_ROCE_V1, .valid = 1};
	r->gid_hash[h].gid = gid;
	atomic_store(&r->gid_hash[h].port_plus_1, row + 1);
	if (!p->ethernet) {
		atomic_store(&p->lid, FIRST_LID);
		atomic_store(&r->lid_port_plus_1[FIRST_LID], (uint16_t)(row + 1));
	}
	atomic_store(&p->state, IB_PORT_ACTIVE);
}

int fabric_client_open(const struct fabric_client_ops *ops, struct fabric_client **out)
{
	(void)ops;
	if (!client.registry) {
		client.registry =
			calloc(1, sizeof(struct registry) + PORTS * sizeof(struct registry_port));
		client.slots = aligned_alloc(64, REGISTRY_SLOTS * sizeof(struct slot));
		MUST(client.registry && client.slots);
		memset(client.slots, 0, REGISTRY_SLOTS * sizeof(struct slot));
		client.registry->magic = REGISTRY_MAGIC;
		client.registry->version = REGISTRY_VERSION;
		client.registry->nports = PORTS;
		for (uint32_t row = 0; row < PORTS; row++)
			add_port(client.registry, row);
	}
	*out = &client;
	return 0;
}

void fabric_client_close(struct fabric_client *c)
{
	(void)c;
}

void fabric_client_forget(struct fabric_client *c)
{
	(void)c;
}

const struct registry *fabric_registry(const struct fabric_client *c)
{
	return c->registry;
}

struct slot *fabric_slots(const struct fabric_client *c)
{
	return c->slots;
}

uint16_t fabric_slot(const struct fabric_client *c)
{
	(void)c;
	return 0;
}

uint32_t fabric_host_ports(const struct fabric_client *c, uint32_t *rows, uint32_t max)
{
	(void)c;
	for (uint32_t row = 0; row < PORTS && row < max; row++)
		rows[row] = row;
	return PORTS;
}

int64_t fabric_number_chunk(struct fabric_client *c, enum number_kind kind)
{
	uint32_t chunk;

	MUST(kind < NUMBER_KINDS);
	/* Few, so that running out is tried too. */
	if (c->next_chunk[kind] == 8)
		return -ENOSPC;
	chunk = ++c->next_chunk[kind];
	if (kind == NUMBER_QPN)
		atomic_store(&c->registry->qpn_slot_plus_1[chunk], 1);
	return (int64_t)chunk << REGISTRY_CHUNK_SHIFT;
}

int fabric_open_channel(struct fabric_client *c, uint16_t peer, int *fd, size_t *bytes, int *side)
{
	(void)c, (void)peer, (void)fd, (void)bytes, (void)side;
	return -ENOTCONN;
}

ssize_t fabric_read_attr(const char *path, char *buf, size_t size)
{
	(void)path, (void)buf, (void)size;
	return -ENOENT;
}
