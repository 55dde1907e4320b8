// SPDX-License-Identifier: BSD-2-Clause
/* Assigns addresses. */
#include "fabric/daemon/address.h"

#include "base/compiler.h"
#include "base/endian.h"
#include "base/log.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The network interface of this machine that an Ethernet port stands for. */

/* More addresses of a family than a GID table can hold. */
#define NETDEV_ADDRESSES 16u

struct netdev {
	char name[IF_NAMESIZE];
	uint8_t mac[6];
	uint32_t nipv4;
	uint8_t ipv4[NETDEV_ADDRESSES][4];
	uint32_t nipv6; /* without link-local ones, because the default GID covers those */
	uint8_t ipv6[NETDEV_ADDRESSES][16];
	uint32_t nleft_out; /* how many addresses the arrays have no room for */
};

/* ---- looks at the machine's interfaces through getifaddrs(3) ---- */

static bool netdev_usable(const struct ifaddrs *a)
{
	return a->ifa_addr && a->ifa_addr->sa_family == AF_INET && (a->ifa_flags & IFF_UP) &&
	       !(a->ifa_flags & IFF_LOOPBACK) && strlen(a->ifa_name) < IF_NAMESIZE;
}

static void take_address(struct netdev *nd, const struct sockaddr *sa)
{
	union {
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_ll ll;
	} u;

	/* getifaddrs promises alignment for the family's own type only. */
	switch (sa->sa_family) {
	case AF_INET:
		memcpy(&u.in, sa, sizeof(u.in));
		if (nd->nipv4 == NETDEV_ADDRESSES)
			nd->nleft_out++;
		else
			memcpy(nd->ipv4[nd->nipv4++], &u.in.sin_addr, 4);
		break;
	case AF_INET6:
		memcpy(&u.in6, sa, sizeof(u.in6));
		if (IN6_IS_ADDR_LINKLOCAL(&u.in6.sin6_addr))
			break;
		if (nd->nipv6 == NETDEV_ADDRESSES)
			nd->nleft_out++;
		else
			memcpy(nd->ipv6[nd->nipv6++], &u.in6.sin6_addr, 16);
		break;
	case AF_PACKET:
		memcpy(&u.ll, sa, sizeof(u.ll));
		if (u.ll.sll_halen == sizeof(nd->mac))
			memcpy(nd->mac, u.ll.sll_addr, sizeof(nd->mac));
		break;
	default:
		break;
	}
}

/* Returns whether the list has the interface that *out names. */
static bool take_addresses(struct netdev *out, const struct ifaddrs *list)
{
	bool found = false;

	for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
		if (strcmp(a->ifa_name, out->name) != 0)
			continue;
		found = true;
		if (a->ifa_addr)
			take_address(out, a->ifa_addr);
	}
	return found;
}

/* The first interface that is up, has an IPv4 address and is no loopback; else the loopback. */
static void netdev_find(struct netdev *out)
{
	struct ifaddrs *list = NULL;

	memset(out, 0, sizeof(*out));
	text_copy(out->name, sizeof(out->name), "lo");
	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
		if (netdev_usable(a)) {
			text_copy(out->name, sizeof(out->name), a->ifa_name);
			break;
		}
	}
	(void)take_addresses(out, list);
	freeifaddrs(list);
}

/* The interface of that name; false: there is none. */
static must_check bool netdev_named(struct netdev *out, const char *name)
{
	struct ifaddrs *list = NULL;
	bool found;

	memset(out, 0, sizeof(*out));
	if (!text_copy(out->name, sizeof(out->name), name) || getifaddrs(&list))
		return false;
	found = take_addresses(out, list);
	freeifaddrs(list);
	return found;
}

#define OUI_MELLANOX  0x0c42a1ull
#define CARD_GUIDS    16u /* the GUIDs of a card's functions and ports count up */
#define INVENTED_GIDS 4u  /* the MAC's own address and the IPv4 address, each as RoCE v1 and v2 */

/* 198.18.0.0/15: 9 bits name 512 blocks of 256 addresses; a block serves 85 hosts with 3 each. */
#define IPV4_HOSTS 512u
#define IPV4_PORTS 3u
#define IPV4_LAST  254u

#define PORT_FORMAT "host '%s', %s port %u"
#define PORT_NAMES(f, row)                                                 \
	fabric_host_name(f, row), subnet_node_of(&(f)->subnet, row)->name, \
		(f)->subnet.ports[row].number

uint32_t address_gids(uint32_t host, bool ethernet)
{
	if (!ethernet)
		return SUBNET_IB_GIDS;
	return host ? INVENTED_GIDS : SUBNET_ETHERNET_GIDS;
}

uint64_t address_guid(uint32_t host, uint32_t host_index)
{
	/* As on the cards: the OUI, 0x0300, then the card. */
	return OUI_MELLANOX << 40 | (0x0300000000ull + (uint64_t)(host + 1) * CARD_GUIDS) |
	       host_index;
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

/* ---- GID tables ---- */

static int gid_refused(const struct fabric *f, uint32_t row, const union ib_gid *gid,
		       uint32_t owner)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
	log_error(PORT_FORMAT ": its GID %s is that of " PORT_FORMAT, PORT_NAMES(f, row), text,
		  PORT_NAMES(f, owner));
	return -EADDRINUSE;
}

/*
 * Reports an address that is left out, because a port's table may be too small for all addresses of
 * its network interface.
 */
static void gid_left_out(const struct fabric *f, uint32_t row, const union ib_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
	log_warn(PORT_FORMAT ": no room in the GID table for %s", PORT_NAMES(f, row), text);
}

/* Appends to the port's table.  One entry always stays empty, so that programs meet that too. */
static int gid_append(struct fabric *f, uint32_t row, const union ib_gid *gid, enum gid_type type)
{
	const struct subnet_gid_entry entry = {*gid, type};
	struct subnet_gid_entry there;
	uint32_t n = 0, owner;
	int ret;

	while (subnet_gid(&f->subnet, row, n, &there))
		n++;
	ret = n + 1 < subnet_port_gids(&f->subnet.ports[row])
		      ? subnet_set_gid(&f->subnet, row, n, &entry, &owner)
		      : -ERANGE;
	if (ret == -ERANGE) {
		gid_left_out(f, row, gid);
		return 0;
	}
	return ret == -EADDRINUSE ? gid_refused(f, row, gid, owner) : ret;
}

/* Appends an address as RoCE v1 and then as v2, which is the kernel's order. */
static int gid_append_both(struct fabric *f, uint32_t row, union ib_gid gid)
{
	int ret = gid_append(f, row, &gid, GID_IB_ROCE_V1);

	return ret ? ret : gid_append(f, row, &gid, GID_ROCE_V2);
}

/* ---- Ethernet ---- */

/*
 * Gives 198.18.hh.pp and 198.19.hh.pp; the hosts from 512 on have the next three pp of those
 * before.
 */
static int netdev_invent(const struct fabric *f, struct netdev *nd, uint32_t host, uint32_t row)
{
	uint32_t last = f->subnet.ports[row].host_index + 1 + IPV4_PORTS * (host / IPV4_HOSTS);
	const uint8_t addr[4] = {198, (uint8_t)(18 | (host >> 8 & 1)), (uint8_t)host,
				 (uint8_t)last};

	if (last > IPV4_LAST) {
		log_error(PORT_FORMAT ": no address of 198.18.0.0/15 is left for it",
			  PORT_NAMES(f, row));
		return -ENOSPC;
	}
	memset(nd, 0, sizeof(*nd));
	memcpy(nd->ipv4[nd->nipv4++], addr, sizeof(addr));
	return 0;
}

static int netdev_gids(struct fabric *f, uint32_t row, const struct netdev *nd)
{
	int ret = gid_append_both(f, row, gid_link_local(mac_eui64(f->subnet.ports[row].mac)));

	for (uint32_t i = 0; i < nd->nipv4 && !ret; i++)
		ret = gid_append_both(f, row, gid_ipv4(nd->ipv4[i]));
	for (uint32_t i = 0; i < nd->nipv6 && !ret; i++) {
		union ib_gid gid;

		memcpy(gid.raw, nd->ipv6[i], sizeof(gid.raw));
		ret = gid_append_both(f, row, gid);
	}
	if (nd->nleft_out)
		log_warn(PORT_FORMAT ": %u more addresses of %s than its GID table has room for",
			 PORT_NAMES(f, row), nd->nleft_out, nd->name);
	return ret;
}

/*
 * Tells whether the port is the last of its host's Ethernet ports, which is the one at the
 * machine's interface: so mlx5_1 stays there, whatever mlx5_0 is.
 */
static bool is_last_ethernet(const struct fabric *f, uint32_t row)
{
	const struct topology_host *host =
		&f->topology.hosts[subnet_node_of(&f->subnet, row)->host];
	uint32_t last = 0, at = 0;

	for (uint32_t i = 0; i < host->nhcas; i++) {
		const struct topology_hca *hca = &f->topology.hcas[host->first_hca + i];

		at += hca->nports;
		if (hca->ethernet)
			last = at;
	}
	return f->subnet.ports[row].host_index + 1 == last;
}

/* The interface that was chosen for the port's device, or "". */
static const char *netdev_chosen(const struct fabric *f, uint32_t row)
{
	const struct subnet_node *node = subnet_node_of(&f->subnet, row);
	const struct topology_host *host = &f->topology.hosts[node->host];

	return f->topology.hcas[host->first_hca + node->device].netdev;
}

static bool is_chosen(const struct fabric *f, const char *netdev)
{
	for (uint32_t i = 0; i < f->topology.nhcas; i++)
		if (!strcmp(f->topology.hcas[i].netdev, netdev))
			return true;
	return false;
}

static int netdev_choose(const struct fabric *f, struct netdev *nd, uint32_t host, uint32_t row)
{
	const char *chosen = netdev_chosen(f, row);

	if (chosen[0] && !netdev_named(nd, chosen)) {
		log_error(PORT_FORMAT ": the machine has no interface '%s'", PORT_NAMES(f, row),
			  chosen);
		return -ENODEV;
	}
	if (chosen[0])
		return 0;
	if (host != 0 || !is_last_ethernet(f, row))
		return netdev_invent(f, nd, host, row);
	netdev_find(nd);
	/* An interface that was chosen for a device is that device's alone. */
	return is_chosen(f, nd->name) ? netdev_invent(f, nd, host, row) : 0;
}

int address_ethernet(struct fabric *f, uint32_t row)
{
	static const uint8_t no_mac[6];
	struct subnet_port *p = &f->subnet.ports[row];
	uint32_t host = subnet_node_of(&f->subnet, row)->host;
	const uint8_t own_mac[6] = {
		0x02, 0x53, 0x48, (uint8_t)(host >> 8), (uint8_t)host, (uint8_t)p->host_index};
	struct netdev nd;
	int ret = netdev_choose(f, &nd, host, row);

	if (ret)
		return ret;
	/* The loopback interface has no MAC, but a RoCE destination must have one. */
	memcpy(p->mac, memcmp(nd.mac, no_mac, 6) ? nd.mac : own_mac, sizeof(p->mac));
	memcpy(p->netdev, nd.name, sizeof(p->netdev));
	p->guid = be64toh(mac_eui64(p->mac));
	atomic_store_explicit(&p->pkeys[0], SUBNET_PKEY_DEFAULT, memory_order_relaxed);
	return netdev_gids(f, row, &nd);
}

/* ---- the address of the network behind a carrier ---- */

#define RENAMED_FIRST 0u
#define RENAMED_USUAL 3u

static void gid_set(struct fabric *f, uint32_t row, uint32_t index,
		    const struct subnet_gid_entry *entry)
{
	uint32_t owner;

	/* That no other port has the address was looked at before. */
	if (subnet_set_gid(&f->subnet, row, index, entry, &owner))
		log_debug("GID %u of port %u cannot be set", index, row);
}

static uint32_t gid_entries(const struct fabric *f, uint32_t row)
{
	uint32_t room = f->subnet.ports[row].gid_room;

	return room < SUBNET_ETHERNET_GIDS ? room : SUBNET_ETHERNET_GIDS;
}

int address_rename(struct fabric *f, uint32_t row, const union ib_gid *gid)
{
	const struct subnet_gid_entry entry = {*gid, GID_ROCE_V2};
	uint32_t owner = subnet_port_by_gid(&f->subnet, gid);
	struct port_end *end = &f->ends[row];

	if (owner != SUBNET_NONE && owner != row)
		return -EADDRINUSE;
	for (uint32_t i = 0; i < gid_entries(f, row); i++) {
		if (!end->renamed)
			end->own_there[i] = subnet_gid(&f->subnet, row, i, &end->own[i]);
		gid_set(f, row, i, i == RENAMED_FIRST || i == RENAMED_USUAL ? &entry : NULL);
	}
	end->renamed = true;
	return 0;
}

bool address_restore(struct fabric *f, uint32_t row)
{
	struct port_end *end = &f->ends[row];

	if (!end->renamed)
		return false;
	for (uint32_t i = 0; i < gid_entries(f, row); i++)
		gid_set(f, row, i, NULL);
	for (uint32_t i = 0; i < gid_entries(f, row); i++)
		gid_set(f, row, i, end->own_there[i] ? &end->own[i] : NULL);
	end->renamed = false;
	return true;
}
