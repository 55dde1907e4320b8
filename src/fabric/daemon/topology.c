// SPDX-License-Identifier: BSD-2-Clause
/*
 * Hosts, their HCAs and what the ports are called: GUIDs, LIDs, MACs, GIDs, P_Keys.  The topology
 * is a table of rows; everything in the registry follows from it, so two daemons with the same
 * table make the same fabric.
 *
 * Ethernet ports: the first host's port stands for a network interface of this machine and has its
 * MAC and addresses.  The other hosts exist only here: their MACs are locally administered
 * (02:53:48:hh:hh:pp; hh:hh host, pp device), and their IPv4 addresses are of 198.18.0.0/15
 * (198.18.hh.pp and 198.19.hh.pp), which RFC 2544 sets aside for such use: no real network has
 * them.
 */
#include "fabric/daemon/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/text.h"
#include "fabric/daemon/netdev.h"

struct topology_row {
	const char *host; /* rows of one host are neighbours */
	const char *hca;
	bool ethernet;
};

static const struct topology_row default_topology[] = {
	{FABRIC_DEFAULT_HOST, "mlx5_0", false},
	{FABRIC_DEFAULT_HOST, "mlx5_1", true},
	{"host2", "mlx5_0", false},
	{"host2", "mlx5_1", true},
};

#define OUI_MELLANOX 0x0c42a1ull
#define PKEY_DEFAULT 0xffffu /* full member of the default partition */
#define FIRST_LID    1u

static uint64_t row_guid(uint32_t host, uint32_t device)
{
	/* As on the cards: the OUI, 0x0300, then the card; its functions count up.  16 per card. */
	return OUI_MELLANOX << 40 | 0x0300000000ull | (uint64_t)(host + 1) << 4 | device;
}

/* Modified EUI-64 (RFC 4291, appendix A), in network order. */
static uint64_t mac_eui64(const uint8_t mac[6])
{
	const uint8_t id[8] = {mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
	uint64_t v;

	memcpy(&v, id, sizeof(v));
	return v;
}

static union ib_gid gid_link_local(uint64_t interface_id)
{
	union ib_gid gid = {.half = {htobe64(0xfe80ull << 48), interface_id}};

	return gid;
}

static union ib_gid gid_ipv4(const uint8_t addr[4])
{
	union ib_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	memcpy(gid.raw + 12, addr, 4);
	return gid;
}

/* False if another port has that GID already: a GID names one port of the fabric. */
static bool gid_publish(struct registry *r, uint32_t row, const union ib_gid *gid)
{
	uint32_t i = registry_gid_hash(gid);

	for (uint32_t n = 0; n < REGISTRY_GID_HASH; n++, i = (i + 1) & (REGISTRY_GID_HASH - 1)) {
		struct registry_gid_slot *s = &r->gid_hash[i];
		uint32_t owner = atomic_load_explicit(&s->port_plus_1, memory_order_relaxed);

		if (owner && s->gid.half[0] == gid->half[0] && s->gid.half[1] == gid->half[1])
			return owner == row + 1;
		if (!owner) {
			s->gid = *gid;
			atomic_store_explicit(&s->port_plus_1, row + 1, memory_order_release);
			return true;
		}
	}
	return false;
}

/* Appends to the port's table.  One entry always stays empty: programs must meet that too. */
static void gid_add(struct registry *r, uint32_t row, union ib_gid gid, enum gid_type type)
{
	struct registry_port *p = &r->ports[row];
	uint32_t n = 0;

	while (n < REGISTRY_GIDS && p->gids[n].valid)
		n++;
	if (n >= port_gids(p) - 1 || !gid_publish(r, row, &gid))
		return;
	p->gids[n] = (struct registry_gid){.gid = gid, .type = (uint8_t)type, .valid = 1};
}

/* In the kernel's order: each address as RoCE v1, then v2; the MAC's own address first. */
static void gid_add_both(struct registry *r, uint32_t row, union ib_gid gid)
{
	gid_add(r, row, gid, GID_IB_ROCE_V1);
	gid_add(r, row, gid, GID_ROCE_V2);
}

static void netdev_invent(struct netdev *nd, uint32_t host, uint32_t device)
{
	const uint8_t addr[4] = {198, (uint8_t)(18 | (host >> 8 & 1)), (uint8_t)host,
				 (uint8_t)(device + 1)};

	memset(nd, 0, sizeof(*nd));
	memcpy(nd->ipv4[nd->nipv4++], addr, sizeof(addr));
}

static void ethernet_port(struct registry *r, uint32_t row, uint32_t host, uint32_t device)
{
	const uint8_t own_mac[6] = {0x02,	   0x53,	   0x48, (uint8_t)(host >> 8),
				    (uint8_t)host, (uint8_t)device};
	static const uint8_t no_mac[6];
	struct registry_port *p = &r->ports[row];
	struct netdev nd;

	if (host == 0)
		netdev_find(&nd);
	else
		netdev_invent(&nd, host, device);
	/* The loopback interface has none, but a RoCE destination must. */
	memcpy(p->mac, memcmp(nd.mac, no_mac, 6) ? nd.mac : own_mac, sizeof(p->mac));
	memcpy(p->netdev, nd.name, sizeof(p->netdev));
	p->port_guid = be64toh(mac_eui64(p->mac));
	p->pkeys[0] = PKEY_DEFAULT;
	gid_add_both(r, row, gid_link_local(mac_eui64(p->mac)));
	for (uint32_t i = 0; i < nd.nipv4; i++)
		gid_add_both(r, row, gid_ipv4(nd.ipv4[i]));
	for (uint32_t i = 0; i < nd.nipv6; i++) {
		union ib_gid gid;

		memcpy(gid.raw, nd.ipv6[i], sizeof(gid.raw));
		gid_add_both(r, row, gid);
	}
}

static void infiniband_port(struct fabric *f, uint32_t row, uint32_t lid)
{
	struct registry_port *p = &f->registry->ports[row];

	p->port_guid = p->node_guid;
	p->sm_lid = f->sm_lid;
	p->pkeys[0] = PKEY_DEFAULT;
	gid_add(f->registry, row, gid_link_local(htobe64(p->port_guid)), GID_IB_ROCE_V1);
	atomic_store_explicit(&p->lid, lid, memory_order_relaxed);
	atomic_store_explicit(&f->registry->lid_port_plus_1[lid], (uint16_t)(row + 1),
			      memory_order_release);
}

static void registry_fill(struct fabric *f, const struct topology_row *rows, uint32_t nrows)
{
	uint32_t lid = FIRST_LID;

	f->sm_lid = FIRST_LID;
	for (uint32_t row = 0; row < nrows; row++) {
		struct registry_port *p = &f->registry->ports[row];
		struct fabric_host *host;
		uint32_t device;

		if (!row || strcmp(rows[row].host, rows[row - 1].host) != 0)
			f->nhosts++;
		host = &f->hosts[f->nhosts - 1];
		text_copy(host->name, sizeof(host->name), rows[row].host);
		device = host->nports++;
		host->rows[device] = row;
		p->host = f->nhosts - 1;
		p->ethernet = rows[row].ethernet;
		p->node_guid = row_guid(p->host, device);
		text_copy(p->hca, sizeof(p->hca), rows[row].hca);
		if (p->ethernet)
			ethernet_port(f->registry, row, p->host, device);
		else
			infiniband_port(f, row, lid++);
		atomic_store_explicit(&p->state, IB_PORT_ACTIVE, memory_order_release);
	}
	f->registry->nports = nrows;
	f->registry->model = f->model;
	f->registry->version = REGISTRY_VERSION;
	f->registry->magic = REGISTRY_MAGIC;
}

/*
 * A shared segment of ours.  Sealed in size, so that no client can shorten it under the others; and
 * against new writable mappings where only we may write.
 */
static int segment(const char *name, size_t bytes, bool ours_alone, int *fd, void *out)
{
	unsigned seals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	void *p;
	int ret;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, (off_t)bytes))
		goto close_fd;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (p == MAP_FAILED)
		goto close_fd;
	if (ours_alone)
		seals |= F_SEAL_FUTURE_WRITE;
	fcntl(*fd, F_ADD_SEALS, seals);
	memcpy(out, &p, sizeof(p));
	return 0;

close_fd:
	ret = -errno;
	close(*fd);
	*fd = -1;
	return ret;
}

int fabric_create(struct fabric *f)
{
	const uint32_t nrows = array_size(default_topology);
	int ret;

	f->registry_fd = f->slots_fd = -1;
	f->hosts = calloc(nrows, sizeof(*f->hosts));
	f->base = calloc(nrows, sizeof(*f->base));
	if (!f->hosts || !f->base) {
		ret = -ENOMEM;
		goto destroy;
	}
	f->registry_bytes = sizeof(*f->registry) + nrows * sizeof(f->registry->ports[0]);
	ret = segment("softhca-registry", f->registry_bytes, true, &f->registry_fd, &f->registry);
	if (ret)
		goto destroy;
	f->slots_bytes = REGISTRY_SLOTS * sizeof(*f->slots);
	ret = segment("softhca-slots", f->slots_bytes, false, &f->slots_fd, &f->slots);
	if (ret)
		goto destroy;
	registry_fill(f, default_topology, nrows);
	slots_init(f);
	return 0;

destroy:
	fabric_destroy(f);
	return ret;
}

void fabric_destroy(struct fabric *f)
{
	if (f->slots)
		munmap(f->slots, f->slots_bytes);
	if (f->registry)
		munmap(f->registry, f->registry_bytes);
	if (f->slots_fd >= 0)
		close(f->slots_fd);
	if (f->registry_fd >= 0)
		close(f->registry_fd);
	free(f->base);
	free(f->hosts);
}

int fabric_find_host(const struct fabric *f, const char *name)
{
	if (!name[0])
		return 0;
	for (uint32_t i = 0; i < f->nhosts; i++)
		if (!strcmp(f->hosts[i].name, name))
			return (int)i;
	return -ENOENT;
}

uint64_t fabric_system_guid(const struct fabric *f, uint32_t row)
{
	uint32_t host = f->registry->ports[row].host;

	return f->registry->ports[f->hosts[host].rows[0]].node_guid;
}
