// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stands for the client library of the daemon (fabric/client/client.h): a fabric of one host and
 * one process, in plain memory.  Linked instead of it, so that the whole driver runs without a
 * daemon.
 */
#include "fabric/client/client.h"
#include "fabric/client/link.h"
#include "fabric/client/trouble.h"

#include <stdio.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "registry/emulation.h"
#include "test_subnet.h"

#define PORTS	  3u /* the InfiniBand device has two */
#define FIRST_LID 1u

struct fabric_client {
	struct registry *registry;
	struct subnet subnet;
	struct slot *slots;
	uint32_t next_chunk[NUMBER_KINDS];
};

static struct fabric_client client;

/* Files that carry MADs ask the daemon, which is not here. */
int link_call(int sock, struct msg *m, enum msg_type type, int fds[MSG_MAX_FDS])
{
	(void)sock, (void)m, (void)type, (void)fds;
	return -ECONNREFUSED;
}

int link_open(const char *dir, const char *daemon, struct msg *m, enum msg_type type,
	      int fds[MSG_MAX_FDS])
{
	(void)dir, (void)daemon, (void)m, (void)type, (void)fds;
	return -ECONNREFUSED;
}

int fabric_client_open(const struct fabric_client_ops *ops, struct fabric_client **out)
{
	(void)ops;
	if (!client.registry) {
		client.registry = calloc(1, sizeof(struct registry));
		client.slots = aligned_alloc(64, REGISTRY_SLOTS * sizeof(struct slot));
		MUST(client.registry && client.slots);
		memset(client.slots, 0, REGISTRY_SLOTS * sizeof(struct slot));
		client.registry->magic = REGISTRY_MAGIC;
		client.registry->version = REGISTRY_VERSION;
		atomic_store(&client.registry->slot_host_plus_1[0], 1);
		atomic_store(&client.slots[0].alive, 1);
		test_subnet_open(&client.subnet, PORTS);
		test_subnet_hca(&client.subnet, 0, 0, 2, false);
		test_subnet_hca(&client.subnet, 0, 1, 1, true);
		client.subnet.ports[2].host_index = 2;
		for (uint32_t row = 0; row < PORTS; row++)
			test_subnet_gid(&client.subnet, row, (uint8_t)(row + 1),
					row == 2 ? GID_ROCE_V2 : GID_IB_ROCE_V1);
		for (uint16_t row = 0; row < 2; row++)
			test_subnet_lid(&client.subnet, row, (uint16_t)(FIRST_LID + row));
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

const struct subnet *fabric_subnet(const struct fabric_client *c)
{
	return &c->subnet;
}

struct slot *fabric_slots(const struct fabric_client *c)
{
	return c->slots;
}

struct traffic *fabric_traffic(const struct fabric_client *c)
{
	(void)c;
	return NULL;
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

bool fabric_send_gsi(struct fabric_client *c, const struct gsi_datagram *d)
{
	(void)c, (void)d;
	return false;
}

void fabric_tell_group(struct fabric_client *c, uint32_t row, const union ib_gid *gid, bool joins)
{
	(void)c, (void)row, (void)gid, (void)joins;
}

int fabric_open_channel(struct fabric_client *c, uint16_t peer, int *fd, size_t *bytes, int *side)
{
	(void)c, (void)peer, (void)fd, (void)bytes, (void)side;
	return -ENOTCONN;
}

static int function_memory = -1;

/* One memory for all inputs, as that of the daemon. */
struct emulation *fuzz_function(void)
{
	static struct emulation *e;

	if (e)
		return e;
	function_memory = memfd_create("function", MFD_CLOEXEC);
	MUST(function_memory >= 0 && !ftruncate(function_memory, sizeof(*e)));
	e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE, MAP_SHARED, function_memory, 0);
	MUST(e != MAP_FAILED);
	memset(e->doorbell, 0xff, sizeof(e->doorbell));
	return e;
}

/* The Ethernet device emulates one. */
int fabric_open_function(struct fabric_client *c, uint32_t device, int *fd)
{
	(void)c, (void)fuzz_function();
	if (device != 1)
		return -ENODEV;
	*fd = fcntl(function_memory, F_DUPFD_CLOEXEC, 0);
	MUST(*fd >= 0);
	return 0;
}

void fabric_tell_violation(struct fabric_client *c, const struct key_violation *v)
{
	(void)c, (void)v;
}

ssize_t fabric_read_attr(const char *path, char *buf, size_t size)
{
	(void)path, (void)buf, (void)size;
	return -ENOENT;
}

int fabric_write_attr(const char *path)
{
	(void)path;
	return -ENOENT;
}

int fabric_port_counters(uint32_t row, uint64_t totals[PORT_COUNTERS])
{
	(void)row, (void)totals;
	return -ENODEV;
}

const struct fabric_environment *fabric_environment(void)
{
	return NULL;
}

void trouble_error_text(int error, char *buf, size_t size)
{
	snprintf(buf, size, "%s", strerror(-error));
}

void trouble_text(const struct trouble *t, char *buf, size_t size)
{
	snprintf(buf, size, "error %d", t->error);
}
