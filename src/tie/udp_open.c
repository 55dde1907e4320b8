// SPDX-License-Identifier: BSD-2-Clause
/* Addresses, networks and the socket; see udp.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "tie/link_watch.h"
#include "tie/udp.h"

#define GID_BITS       128u
#define MAPPED_BITS    96u /* in front of an IPv4 address */
#define MTU_HEADERS    96u /* as Linux keeps free for headers (iboe_get_mtu) */
#define RECEIVE_BYTES  (8u << 20)
#define MULTICAST_HOPS 64

/* ---- addresses ---- */

static union ib_gid gid_of_ipv4(const void *ip)
{
	union ib_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	memcpy(gid.raw + 12, ip, 4);
	return gid;
}

/* Reads an address of either family. */
static bool gid_read(const char *text, union ib_gid *gid)
{
	uint8_t ip[16];

	if (inet_pton(AF_INET, text, ip) == 1)
		*gid = gid_of_ipv4(ip);
	else if (inet_pton(AF_INET6, text, ip) == 1)
		memcpy(gid->raw, ip, sizeof(gid->raw));
	else
		return false;
	return true;
}

static void gid_write(const union ib_gid *gid, char text[INET6_ADDRSTRLEN])
{
	bool ipv4 = ib_gid_is_ipv4(gid);

	text[0] = '\0';
	(void)inet_ntop(ipv4 ? AF_INET : AF_INET6, gid->raw + (ipv4 ? 12 : 0), text,
			INET6_ADDRSTRLEN);
}

static bool gid_is_any(const union ib_gid *gid)
{
	static const union ib_gid any;

	return !memcmp(gid, &any, sizeof(any)) ||
	       (ib_gid_is_ipv4(gid) && !memcmp(gid->raw + 12, any.raw, 4));
}

static bool gid_is_link_local(const union ib_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static bool gid_in(const union ib_gid *gid, const struct udp_prefix *p)
{
	unsigned whole = p->bits / 8, rest = p->bits % 8;

	return !memcmp(gid->raw, p->gid.raw, whole) &&
	       (!rest || !((gid->raw[whole] ^ p->gid.raw[whole]) >> (8 - rest)));
}

bool udp_is_peer(const struct udp_socket *u, const union ib_gid *gid)
{
	for (unsigned i = 0; i < u->npeers; i++)
		if (gid_in(gid, &u->peers[i]))
			return true;
	return false;
}

/* ---- interfaces ---- */

static bool gid_of_sockaddr(const struct sockaddr *sa, union ib_gid *gid)
{
	/* getifaddrs promises alignment for the family's own type only. */
	if (sa && sa->sa_family == AF_INET)
		*gid = gid_of_ipv4((const uint8_t *)sa + offsetof(struct sockaddr_in, sin_addr));
	else if (sa && sa->sa_family == AF_INET6)
		memcpy(gid, (const uint8_t *)sa + offsetof(struct sockaddr_in6, sin6_addr), 16);
	else
		return false;
	return true;
}

/* How many bits of the GID the mask of an address stands for. */
static uint8_t mask_bits(const struct ifaddrs *a)
{
	union ib_gid mask;
	unsigned bits, from = a->ifa_addr->sa_family == AF_INET ? MAPPED_BITS : 0;

	if (!gid_of_sockaddr(a->ifa_netmask, &mask))
		return GID_BITS;
	for (bits = from; bits < GID_BITS && mask.raw[bits / 8] & 0x80 >> bits % 8; bits++)
		;
	return (uint8_t)bits;
}

static enum ib_mtu mtu_for(unsigned bytes)
{
	enum ib_mtu mtu = (enum ib_mtu)0;

	for (unsigned m = IB_MTU_256; m <= IB_MTU_4096; m++)
		if (bytes >= (128u << m) + MTU_HEADERS)
			mtu = (enum ib_mtu)m;
	return mtu;
}

static unsigned interface_mtu(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = {0};
	unsigned bytes = 0;

	if (fd < 0)
		return 0;
	if (text_copy(req.ifr_name, sizeof(req.ifr_name), name) && !ioctl(fd, SIOCGIFMTU, &req))
		bytes = (unsigned)req.ifr_mtu;
	close(fd);
	return bytes;
}

static void network_set(const struct ifaddrs *a, struct udp_network *out)
{
	*out = (struct udp_network){
		.up = (a->ifa_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING),
		.bits = mask_bits(a),
		.index = if_nametoindex(a->ifa_name),
	};
	(void)text_copy(out->name, sizeof(out->name), a->ifa_name);
	out->bytes = interface_mtu(a->ifa_name);
	out->mtu = mtu_for(out->bytes);
}

/* True if the interface's address is this one or, on loopback, makes it one of the machine's: all of
 * 127.0.0.0/8 are. */
static bool interface_has(const struct ifaddrs *a, const union ib_gid *gid, uint32_t scope)
{
	struct udp_prefix p;

	if (!gid_of_sockaddr(a->ifa_addr, &p.gid) ||
	    (scope && if_nametoindex(a->ifa_name) != scope))
		return false;
	p.bits = a->ifa_flags & IFF_LOOPBACK ? mask_bits(a) : GID_BITS;
	return gid_in(gid, &p);
}

bool udp_network_find(const union ib_gid *gid, uint32_t scope, struct udp_network *out)
{
	struct ifaddrs *list = NULL;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (const struct ifaddrs *a = list; a && !found; a = a->ifa_next) {
		found = interface_has(a, gid, scope);
		if (found)
			network_set(a, out);
	}
	freeifaddrs(list);
	return found;
}

/* The first address of IPv4 that is no loopback, on an interface that is up. */
static bool address_first(union ib_gid *gid)
{
	struct ifaddrs *list = NULL;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (const struct ifaddrs *a = list; a && !found; a = a->ifa_next)
		found = a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
			(a->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP &&
			gid_of_sockaddr(a->ifa_addr, gid);
	freeifaddrs(list);
	return found;
}

/* ---- the arguments ---- */

/* Finds the address; false: 'error' says what is wrong. */
static bool address_read(struct udp_socket *u, const char *address, char error[UDP_ERROR_BYTES])
{
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE];
	char *scope;

	if (!address) {
		if (address_first(&u->gid))
			return true;
		(void)snprintf(
			error, UDP_ERROR_BYTES,
			"udp: no interface but loopback has an IPv4 address; name an address "
			"of this machine: udp=ADDRESS");
		return false;
	}
	(void)snprintf(text, sizeof(text), "%s", address);
	scope = strchr(text, '%');
	if (scope)
		*scope++ = '\0';
	u->scope = scope ? if_nametoindex(scope) : 0;
	if (strlen(address) >= sizeof(text) || (scope && !u->scope) || !gid_read(text, &u->gid)) {
		(void)snprintf(
			error, UDP_ERROR_BYTES,
			"udp=%.60s: that is no address like 10.0.0.1, fd00::1 or fe80::1%%eth0",
			address);
		return false;
	}
	if (!gid_is_any(&u->gid))
		return true;
	(void)snprintf(
		error, UDP_ERROR_BYTES,
		"udp=%.60s: that is any address, and a port needs one; 'ip addr' lists those "
		"of this machine, and 'udp' without an address takes the first",
		address);
	return false;
}

static bool peers_refused(const char *what, const char *why, char error[UDP_ERROR_BYTES])
{
	(void)snprintf(error, UDP_ERROR_BYTES, "peers: '%.60s' %s", what, why);
	return false;
}

/* Reads a network like 10.0.0.0/24, or an address alone. */
static bool prefix_read(struct udp_socket *u, char *text, char error[UDP_ERROR_BYTES])
{
	struct udp_prefix *p = &u->peers[u->npeers];
	char *slash = strchr(text, '/');
	char all[64];
	uint32_t bits, most;
	bool ipv4;

	(void)snprintf(all, sizeof(all), "%s", text);
	if (u->npeers == UDP_PEERS)
		return peers_refused(all, "is one network too many; 16 can be named", error);
	if (slash)
		*slash++ = '\0';
	if (!gid_read(text, &p->gid))
		return peers_refused(all, "is no network like 10.0.0.0/24 or fd00::/64", error);
	ipv4 = ib_gid_is_ipv4(&p->gid);
	if (ipv4 != ib_gid_is_ipv4(&u->gid))
		return peers_refused(all, "is of another family than the address of the tie",
				     error);
	most = ipv4 ? GID_BITS - MAPPED_BITS : GID_BITS;
	bits = most;
	if (slash && !strcmp(slash, "0"))
		bits = 0;
	else if (slash && !text_number(slash, most, &bits))
		return peers_refused(all, "is no network like 10.0.0.0/24 or fd00::/64", error);
	p->bits = (uint8_t)(bits + GID_BITS - most);
	u->npeers++;
	return true;
}

static bool peers_read(struct udp_socket *u, const char *peers, char error[UDP_ERROR_BYTES])
{
	char *copy = strdup(peers), *rest = copy, *one;
	bool ok = copy != NULL;

	if (!copy)
		(void)snprintf(error, UDP_ERROR_BYTES, "out of memory");
	while (ok && (one = strsep(&rest, ",")))
		ok = prefix_read(u, one, error);
	free(copy);
	return ok;
}

static void text_make(struct udp_socket *u, const char *peers, const struct udp_network *network)
{
	bool ipv4 = ib_gid_is_ipv4(&u->gid);
	char address[INET6_ADDRSTRLEN], base[INET6_ADDRSTRLEN];
	union ib_gid gid = u->gid;

	gid_write(&u->gid, address);
	if (peers) {
		(void)snprintf(u->text, sizeof(u->text), "udp=%s peers=%.70s", address, peers);
		return;
	}
	for (unsigned i = network->bits; i < GID_BITS; i++)
		gid.raw[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
	gid_write(&gid, base);
	(void)snprintf(u->text, sizeof(u->text), "udp=%s peers=%s/%u", address, base,
		       network->bits - (ipv4 ? MAPPED_BITS : 0));
}

/* ---- the socket ---- */

/*
 * Datagrams have to leave with the identification 0, see wire/roce_datagram.h, and nothing in the
 * network may cut them to pieces.
 */
static bool options_set(const struct udp_socket *u)
{
	const int one = 1, probe = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE;
	const int capable = IP_ECN_CAPABLE;
	const int room = RECEIVE_BYTES;

	/* Senders lose what the socket has no room for; without privileges the system limits it. */
	if (setsockopt(u->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(u->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (setsockopt(u->fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		(void)setsockopt(u->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	/* Rows of like datagrams come as one, where the kernel knows that. */
	(void)setsockopt(u->fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
	if (ib_gid_is_ipv4(&u->gid))
		return !setsockopt(u->fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)) &&
		       !setsockopt(u->fd, IPPROTO_IP, IP_TOS, &capable, sizeof(capable)) &&
		       !setsockopt(u->fd, IPPROTO_IP, IP_RECVERR, &one, sizeof(one)) &&
		       !setsockopt(u->fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one)) &&
		       !setsockopt(u->fd, IPPROTO_IP, IP_RECVTTL, &one, sizeof(one));
	/* Cards send without a checksum. */
	return !setsockopt(u->fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &one, sizeof(one)) &&
	       !setsockopt(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) &&
	       !setsockopt(u->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6)) &&
	       !setsockopt(u->fd, IPPROTO_IPV6, IPV6_TCLASS, &capable, sizeof(capable)) &&
	       !setsockopt(u->fd, IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof(one)) &&
	       !setsockopt(u->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &one, sizeof(one)) &&
	       !setsockopt(u->fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &one, sizeof(one));
}

/* The interface that datagrams to groups leave by, and how far they go if the sender does not say. */
static bool multicast_set(int fd, bool ipv4, uint32_t index)
{
	const struct ip_mreqn out = {.imr_ifindex = (int)index};
	const int hops = MULTICAST_HOPS, index6 = (int)index;

	if (ipv4)
		return !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &out, sizeof(out)) &&
		       !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof(hops));
	return !setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index6, sizeof(index6)) &&
	       !setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops));
}

static int socket_bind(const struct udp_socket *u)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(ROCE_V2_UDP_PORT)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(ROCE_V2_UDP_PORT),
				   .sin6_scope_id = u->scope};

	memcpy(&in.sin_addr, u->gid.raw + 12, 4);
	memcpy(&in6.sin6_addr, u->gid.raw, 16);
	return ib_gid_is_ipv4(&u->gid) ? bind(u->fd, (const struct sockaddr *)&in, sizeof(in))
				       : bind(u->fd, (const struct sockaddr *)&in6, sizeof(in6));
}

/* The carrier of a fabric that has just gone down has the port for some moments more. */
#define PORT_WAIT_MS 2000
#define PORT_LOOK_MS 20

static int socket_bind_soon(const struct udp_socket *u)
{
	for (unsigned ms = 0; ms < PORT_WAIT_MS; ms += PORT_LOOK_MS) {
		if (!socket_bind(u))
			return 0;
		if (errno != EADDRINUSE)
			return -1;
		usleep(PORT_LOOK_MS * 1000);
	}
	return socket_bind(u);
}

static void bind_explain(const struct udp_socket *u, char error[UDP_ERROR_BYTES])
{
	char address[INET6_ADDRSTRLEN];

	gid_write(&u->gid, address);
	switch (errno) {
	case EADDRINUSE:
		(void)snprintf(error, UDP_ERROR_BYTES,
			       "UDP port %u of %s is taken: by the tie of another fabric ('softhca "
			       "fabric untie' there), or by the kernel's Soft-RoCE ('modprobe -r "
			       "rdma_rxe')",
			       ROCE_V2_UDP_PORT, address);
		break;
	case EADDRNOTAVAIL:
		(void)snprintf(error, UDP_ERROR_BYTES,
			       "%s is no address of this machine; 'ip addr' lists those that are",
			       address);
		break;
	default:
		(void)snprintf(error, UDP_ERROR_BYTES, "UDP port %u of %s: %s", ROCE_V2_UDP_PORT,
			       address, strerror(errno));
	}
}

static bool group_member_set(int fd, const union ib_gid *group, uint32_t index)
{
	struct ip_mreqn member = {.imr_ifindex = (int)index};
	struct ipv6_mreq member6 = {.ipv6mr_interface = index};
	const int none = 0;

	memcpy(&member.imr_multiaddr, group->raw + 12, 4);
	memcpy(&member6.ipv6mr_multiaddr, group->raw, 16);
	if (ib_gid_is_ipv4(group))
		return !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &none, sizeof(none)) &&
		       !setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof(member));
	return !setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &none, sizeof(none)) &&
	       !setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &member6, sizeof(member6));
}

int udp_open_group(const union ib_gid *group, uint32_t index)
{
	struct udp_socket s = {.gid = *group, .scope = index};
	const int one = 1;
	int ret;

	s.fd = socket(ib_gid_is_ipv4(group) ? AF_INET : AF_INET6,
		      SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Other fabrics of the machine may take the group, too. */
	if (s.fd >= 0 && !setsockopt(s.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    options_set(&s) && !socket_bind(&s) && group_member_set(s.fd, group, index))
		return s.fd;
	ret = -errno;
	if (s.fd >= 0)
		close(s.fd);
	return ret;
}

static bool socket_open(struct udp_socket *u, uint32_t index, char error[UDP_ERROR_BYTES])
{
	u->fd = socket(ib_gid_is_ipv4(&u->gid) ? AF_INET : AF_INET6,
		       SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0 || !options_set(u) || !multicast_set(u->fd, ib_gid_is_ipv4(&u->gid), index) ||
	    socket_bind_soon(u)) {
		bind_explain(u, error);
		return false;
	}
	u->links = link_watch_open(true);
	if (u->links < 0)
		(void)snprintf(error, UDP_ERROR_BYTES, "a socket of netlink: %s", strerror(errno));
	return u->links >= 0;
}

/* Finds the network of the address, which gives the MTU and the peers. */
static bool network_settle(struct udp_socket *u, const char *peers, uint32_t *index,
			   char error[UDP_ERROR_BYTES])
{
	struct udp_network network;
	char address[INET6_ADDRSTRLEN];

	if (!udp_network_find(&u->gid, u->scope, &network)) {
		errno = EADDRNOTAVAIL;
		bind_explain(u, error);
		return false;
	}
	*index = network.index;
	gid_write(&u->gid, address);
	if (!network.mtu) {
		(void)snprintf(error, UDP_ERROR_BYTES,
			       "%s: the interface %s takes packets of %u bytes, and the least that "
			       "RoCE needs is %u; see 'ip link set %s mtu'",
			       address, network.name, network.bytes, 256 + MTU_HEADERS,
			       network.name);
		return false;
	}
	if (gid_is_link_local(&u->gid))
		u->scope = network.index;
	text_make(u, peers, &network);
	if (peers)
		return peers_read(u, peers, error);
	u->peers[0] = (struct udp_prefix){u->gid, network.bits};
	u->npeers = 1;
	return true;
}

bool udp_open(struct udp_socket *u, const char *address, const char *peers,
	      char error[UDP_ERROR_BYTES])
{
	uint32_t index;

	*u = (struct udp_socket){.fd = -1, .links = -1};
	if (address_read(u, address, error) && network_settle(u, peers, &index, error) &&
	    socket_open(u, index, error))
		return true;
	if (u->fd >= 0)
		close(u->fd);
	if (u->links >= 0)
		close(u->links);
	*u = (struct udp_socket){.fd = -1, .links = -1};
	return false;
}
