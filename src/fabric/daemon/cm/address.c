// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which port an address means, and the port numbers of services (docs/connections.md).  In this order:
 *
 *   address of a tie         the port of the program's own host that is tied there
 *   198.18.x.y, 198.19.x.y   port y of host x, as fabric/daemon/address.c numbers them, whatever the
 *   127.18.x.y, 127.19.x.y   link is; the second form works for TCP sockets of the machine, too
 *   0.0.0.0, ::, loopback    the first active port of the program's own host
 *   addresses of the machine the last Ethernet port of the program's own host
 *   other GIDs of RoCE       the port that has it
 *
 * What is none of these, or cannot be reached in the fabric, is outside of it, if a port of the
 * program's host leads out.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"

/* The addresses in front of IPv4 ones. */
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* ---- socket addresses ---- */

/* As the kernel's structure of this name; its numbers are in network order. */
struct sockaddr_ib {
	uint16_t family;
	uint16_t pkey;
	uint32_t flow;
	uint8_t gid[16];
	uint64_t sid, sid_mask, scope;
};

#define SPACE_MASK UINT64_C(0xffffffffffff0000)

static void address_read_ib(const struct sockaddr_ib *ib, struct cm_address *out)
{
	memcpy(out->ip, ib->gid, 16);
	out->flow = ib->flow;
	out->scope = ib->scope;
	out->pkey = be16toh(ib->pkey);
	out->sid = be64toh(ib->sid);
	out->sid_mask = be64toh(ib->sid_mask);
	out->port = (uint16_t)(out->sid & out->sid_mask);
}

int cm_address_read(const void *sockaddr, size_t room, struct cm_address *out)
{
	struct sockaddr_in6 in6 = {0};
	struct sockaddr_in in = {0};
	struct sockaddr_ib ib;
	sa_family_t family;
	size_t bytes;

	*out = (struct cm_address){0};
	if (room < sizeof(family))
		return -EINVAL;
	memcpy(&family, sockaddr, sizeof(family));
	if (family == AF_INET && room >= sizeof(in)) {
		bytes = sizeof(in);
		memcpy(&in, sockaddr, sizeof(in));
		memcpy(out->ip + 12, &in.sin_addr, 4);
		out->port = ntohs(in.sin_port);
	} else if (family == AF_INET6 && room >= sizeof(in6)) {
		bytes = sizeof(in6);
		memcpy(&in6, sockaddr, sizeof(in6));
		memcpy(out->ip, &in6.sin6_addr, 16);
		out->port = ntohs(in6.sin6_port);
		out->flow = in6.sin6_flowinfo;
		out->scope = in6.sin6_scope_id;
	} else if (family == CM_AF_IB && room >= sizeof(ib)) {
		bytes = sizeof(ib);
		memcpy(&ib, sockaddr, sizeof(ib));
		address_read_ib(&ib, out);
	} else {
		return -EINVAL;
	}
	out->family = family;
	return (int)bytes;
}

uint16_t cm_address_write(const struct cm_address *a, uint8_t out[CM_SOCKADDR_BYTES])
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(a->port),
				   .sin6_flowinfo = a->flow,
				   .sin6_scope_id = a->scope};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	struct sockaddr_ib ib = {
		.family = CM_AF_IB,
		.pkey = htobe16(a->pkey),
		.flow = a->flow,
		.sid = htobe64((a->sid & SPACE_MASK) | a->port),
		.sid_mask = htobe64(a->sid_mask),
		.scope = a->scope,
	};

	memset(out, 0, CM_SOCKADDR_BYTES);
	switch (a->family) {
	case AF_INET:
		memcpy(&in.sin_addr, a->ip + 12, 4);
		memcpy(out, &in, sizeof(in));
		return sizeof(in);
	case AF_INET6:
		memcpy(&in6.sin6_addr, a->ip, 16);
		memcpy(out, &in6, sizeof(in6));
		return sizeof(in6);
	case CM_AF_IB:
		memcpy(ib.gid, a->ip, 16);
		memcpy(out, &ib, sizeof(ib));
		return sizeof(ib);
	default:
		return 0;
	}
}

bool cm_address_is_multicast(const struct cm_address *a)
{
	return a->family == AF_INET ? (a->ip[12] & 0xf0) == 0xe0 : a->ip[0] == 0xff;
}

bool cm_address_equal(const struct cm_address *a, const struct cm_address *b)
{
	return a->family == b->family && !memcmp(a->ip, b->ip, sizeof(a->ip));
}

static bool is_mapped(const uint8_t ip[16])
{
	return !memcmp(ip, mapped, sizeof(mapped));
}

/* The four bytes of an address of IPv4, also where it comes as one of IPv6; NULL: it is none. */
static const uint8_t *ipv4_of(const struct cm_address *a)
{
	if (a->family == AF_INET || (a->family == AF_INET6 && is_mapped(a->ip)))
		return a->ip + 12;
	return NULL;
}

/* The network of the fabric's own addresses; 0: it is not one of them. */
static bool is_of_fabric(const uint8_t ip[4])
{
	return (ip[0] == 198 || ip[0] == 127) && (ip[1] & 0xfe) == 18;
}

bool cm_address_is_any(const struct cm_address *a)
{
	static const uint8_t zeros[16], loopback[16] = {[15] = 1};
	const uint8_t *ip = ipv4_of(a);

	if (ip)
		return (!ip[0] && !ip[1] && !ip[2] && !ip[3]) ||
		       (ip[0] == 127 && !is_of_fabric(ip));
	return !memcmp(a->ip, zeros, 16) || !memcmp(a->ip, loopback, 16);
}

union ib_gid cm_gid_outside(const struct cm_address *a)
{
	union ib_gid gid;

	memcpy(gid.raw, a->ip, sizeof(gid.raw));
	if (a->family == AF_INET)
		memcpy(gid.raw, mapped, sizeof(mapped));
	return gid;
}

/* The port whose GID the address is, or SUBNET_NONE. */
static uint32_t port_of_gid(const struct cm *c, const struct cm_address *a)
{
	const union ib_gid gid = cm_gid_outside(a);

	return subnet_port_by_gid(cm_subnet(c), &gid);
}

/* Makes one address of the two that mean the same port, unless a port has just that one. */
static void address_normalize(const struct cm *c, struct cm_address *a)
{
	if (a->family == AF_INET && is_of_fabric(a->ip + 12) && port_of_gid(c, a) == SUBNET_NONE)
		a->ip[12] = 198;
}

/* ---- ports ---- */

/* The row of a port of a host by its index there, or SUBNET_NONE. */
static uint32_t host_port(const struct cm *c, uint32_t host, uint32_t index)
{
	const struct subnet *s = cm_subnet(c);

	for (uint32_t n = 0; n < s->nnodes; n++) {
		const struct subnet_node *node = &s->nodes[n];

		if (node->kind != SUBNET_HCA || node->host != host)
			continue;
		for (uint32_t i = 0; i < node->nports; i++)
			if (s->ports[node->first_port + i].host_index == index)
				return node->first_port + i;
	}
	return SUBNET_NONE;
}

/* Is the address one of the machine's? */
static bool is_of_machine(const struct cm_address *a)
{
	struct ifaddrs *list;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
		struct cm_address other;

		found = i->ifa_addr &&
			cm_address_read(i->ifa_addr,
					i->ifa_addr->sa_family == AF_INET
						? sizeof(struct sockaddr_in)
						: sizeof(struct sockaddr_in6),
					&other) > 0 &&
			cm_address_equal(a, &other);
	}
	freeifaddrs(list);
	return found;
}

/* The first active port of a host, and its last Ethernet port. */
static uint32_t host_first_active(const struct cm *c, uint32_t host)
{
	uint32_t row, first = host_port(c, host, 0);

	for (uint32_t i = 0; (row = host_port(c, host, i)) != SUBNET_NONE; i++)
		if (subnet_port_active(cm_subnet(c), row))
			return row;
	return first;
}

static uint32_t host_last_ethernet(const struct cm *c, uint32_t host)
{
	uint32_t row, last = SUBNET_NONE;

	for (uint32_t i = 0; (row = host_port(c, host, i)) != SUBNET_NONE; i++)
		if (cm_subnet(c)->ports[row].ethernet)
			last = row;
	return last;
}

/* Has the port the address of a network outside, and no other?  Own tables begin with RoCE v1. */
static bool is_renamed(const struct cm *c, uint32_t row)
{
	struct subnet_gid_entry first;

	return row != SUBNET_NONE && cm_subnet(c)->ports[row].ethernet &&
	       subnet_gid(cm_subnet(c), row, 0, &first) && first.type == GID_ROCE_V2;
}

/* The port of an address of the fabric's own. */
static uint32_t port_of_fabric(const struct cm *c, const uint8_t ip[4])
{
	const uint32_t last = ip[3] ? ip[3] - 1u : CM_PORTS_OF_HOST * 255u;
	const uint32_t row =
		host_port(c,
			  last / CM_PORTS_OF_HOST * CM_HOSTS_OF_BLOCK + ((ip[1] & 1u) << 8 | ip[2]),
			  last % CM_PORTS_OF_HOST);

	return is_renamed(c, row) ? SUBNET_NONE : row;
}

uint32_t cm_address_port(const struct cm *c, uint32_t host, const struct cm_address *a,
			 bool *machine)
{
	const struct subnet *s = cm_subnet(c);
	const uint8_t *ip = ipv4_of(a);
	uint32_t row = port_of_gid(c, a);

	*machine = false;
	if (row != SUBNET_NONE && subnet_ethernet_leads_out(s, row) &&
	    subnet_node_of(s, row)->host == host)
		return row;
	if (ip && is_of_fabric(ip))
		return port_of_fabric(c, ip);
	if (cm_address_is_any(a))
		return host_first_active(c, host);
	if (a->family != CM_AF_IB && is_of_machine(a)) {
		*machine = true;
		return host_last_ethernet(c, host);
	}
	return row;
}

void cm_address_of_port(const struct cm *c, uint32_t row, sa_family_t family,
			struct cm_address *out)
{
	const struct subnet *s = cm_subnet(c);
	const struct subnet_port *p = &s->ports[row];
	const uint32_t host = s->nodes[p->node].host;
	struct subnet_gid_entry e;

	*out = (struct cm_address){.family = family};
	if (family == CM_AF_IB && subnet_gid(s, row, 0, &e)) {
		memcpy(out->ip, e.gid.raw, 16);
		out->pkey = SUBNET_PKEY_DEFAULT;
		return;
	}
	for (uint32_t i = 0; p->ethernet && subnet_gid(s, row, i, &e); i++) {
		const bool ipv4 = is_mapped(e.gid.raw);

		if (e.type != GID_ROCE_V2 || ipv4 != (family == AF_INET))
			continue;
		memcpy(out->ip + (ipv4 ? 12 : 0), e.gid.raw + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
		return;
	}
	if (family == AF_INET6)
		memcpy(out->ip, mapped, sizeof(mapped));
	cm_port_address(host, p->host_index, out->ip + 12);
}

/* ---- port numbers ---- */

#define PRIVILEGED_PORTS 1024u /* unless the kernel says otherwise */

/* The numbers that the kernel gives out by itself. */
static void local_range(uint32_t *low, uint32_t *high)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");

	*low = 32768;
	*high = 60999;
	if (!f)
		return;
	if (fscanf(f, "%u %u", low, high) != 2 || *low < 1 || *high > 65535 || *low > *high) {
		*low = 32768;
		*high = 60999;
	}
	fclose(f);
}

static uint32_t privileged_ports(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");
	uint32_t n = PRIVILEGED_PORTS;

	if (f && fscanf(f, "%u", &n) != 1)
		n = PRIVILEGED_PORTS;
	if (f)
		fclose(f);
	return n;
}

int cm_port_check(const struct cm_id *id, bool reuse)
{
	const bool any = cm_address_is_any(&id->src);
	const struct cm *c = id->cm;

	for (const struct cm_id *o = cm_id_chain(c, CM_BY_PORT, id->src.port); o;
	     o = o->chain[CM_BY_PORT].next) {
		if (o == id || o->requested || o->space != id->space ||
		    o->file->host != id->file->host || o->src.family == AF_UNSPEC ||
		    o->src.port != id->src.port || !o->src.port)
			continue;
		if (reuse && o->reuse && o->state != CM_LISTEN)
			continue;
		if (id->afonly && o->afonly && id->src.family != o->src.family)
			continue;
		if (any || cm_address_is_any(&o->src))
			return -EADDRNOTAVAIL;
		if (cm_address_equal(&id->src, &o->src))
			return -EADDRINUSE;
	}
	return 0;
}

static int port_choose(struct cm_id *id)
{
	uint32_t low, high, n, start;

	local_range(&low, &high);
	n = high - low + 1;
	start = cm_random(id->cm) % n;
	for (uint32_t i = 0; i < n; i++) {
		id->src.port = (uint16_t)(low + (start + i) % n);
		if (!cm_port_check(id, id->reuse))
			return 0;
	}
	id->src.port = 0;
	return -EADDRNOTAVAIL;
}

int cm_port_take(struct cm_id *id, bool privileged)
{
	if (!id->src.port)
		return port_choose(id);
	if (!privileged && id->src.port < privileged_ports())
		return -EACCES;
	return cm_port_check(id, id->reuse);
}

/*
 * The port space of an address.  A service of InfiniBand says it itself, as far as its mask goes; what
 * it may say is a matter of the id's own space.  0: none.
 */
static uint16_t space_of(const struct cm_id *id, const struct cm_address *a)
{
	static const uint16_t spaces[] = {RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP};
	const uint64_t mask = a->sid_mask & SPACE_MASK;

	if (a->family != CM_AF_IB)
		return id->ps;
	for (size_t i = 0; i < array_size(spaces); i++)
		if ((id->ps == RDMA_PS_IB || id->ps == spaces[i]) &&
		    (a->sid & mask) == ((uint64_t)spaces[i] << 16 & mask))
			return spaces[i];
	return 0;
}

/* Completes the service of an address of InfiniBand. */
static void service_complete(struct cm_id *id, struct cm_address *a)
{
	if (a->family != CM_AF_IB)
		return;
	a->sid = (uint64_t)id->space << 16 | a->port;
	a->sid_mask |= SPACE_MASK;
}

int cm_bind(struct cm_id *id, const struct cm_address *a, bool privileged)
{
	const struct subnet *s = cm_subnet(id->cm);
	bool machine;
	int ret;

	if (id->state != CM_IDLE)
		return -EINVAL;
	id->space = space_of(id, a);
	if (!id->space)
		return -EPROTONOSUPPORT;
	id->src = *a;
	address_normalize(id->cm, &id->src);
	if (!cm_address_is_any(&id->src)) {
		id->row = cm_address_port(id->cm, id->file->host, &id->src, &machine);
		ret = machine ? -ENODEV : -EADDRNOTAVAIL;
		if (id->row == SUBNET_NONE ||
		    s->nodes[s->ports[id->row].node].host != id->file->host)
			goto undo;
	}
	if (!id->afonly_given)
		id->afonly = id->src.family == AF_INET;
	ret = cm_port_take(id, privileged);
	if (ret)
		goto undo;
	cm_id_key(id, CM_BY_PORT, id->src.port);
	service_complete(id, &id->src);
	id->dst = (struct cm_address){.family = id->src.family};
	id->state = CM_ADDR_BOUND;
	return 0;

undo:
	id->src = (struct cm_address){0};
	id->row = SUBNET_NONE;
	return ret;
}

union ib_gid cm_gid_of_address(const struct cm *c, uint32_t row, const struct cm_address *a)
{
	const struct subnet *s = cm_subnet(c);
	union ib_gid wanted, found = {.half = {0, 0}};
	bool any = false, of_kind = false;
	struct subnet_gid_entry e;

	memcpy(wanted.raw, a->ip, sizeof(wanted.raw));
	if (a->family == AF_INET)
		memcpy(wanted.raw, mapped, sizeof(mapped));
	for (uint32_t i = 0; subnet_gid(s, row, i, &e); i++) {
		const bool same_kind = is_mapped(e.gid.raw) == is_mapped(wanted.raw);

		if (e.type != GID_ROCE_V2)
			continue;
		if (!memcmp(e.gid.raw, wanted.raw, sizeof(wanted.raw)))
			return e.gid;
		if (!any || (same_kind && !of_kind))
			found = e.gid;
		any = true;
		of_kind |= same_kind;
	}
	return found;
}

union ib_gid cm_gid_of_peer(const struct cm *c, uint32_t row, const struct cm_address *a,
			    const union ib_gid *own)
{
	const union ib_gid gid = cm_gid_of_address(c, row, a);
	struct cm_address like = {.family = AF_INET6};

	if (is_mapped(gid.raw) == is_mapped(own->raw))
		return gid;
	memcpy(like.ip, own->raw, sizeof(like.ip));
	return cm_gid_of_address(c, row, &like);
}

/* ---- targets ---- */

/* A machine's address is the caller's own host, unless only another one has such a service. */
static uint32_t machine_target(const struct cm_id *id, const struct cm_address *dst, uint32_t own)
{
	uint32_t host = UINT32_MAX;

	for (const struct cm_id *o = cm_id_chain(id->cm, CM_BY_PORT, dst->port); o;
	     o = o->chain[CM_BY_PORT].next) {
		if (!o->listens || o->space != id->space || o->src.port != dst->port)
			continue;
		if (o->file->host == id->file->host)
			return own;
		if (o->file->host < host)
			host = o->file->host;
	}
	return host == UINT32_MAX ? own : host_last_ethernet(id->cm, host);
}

/* A port of the host from which that one can be reached, with the same index if there is one. */
static uint32_t source_for(const struct cm *c, uint32_t host, uint32_t to)
{
	const struct subnet *s = cm_subnet(c);
	uint32_t row, found = SUBNET_NONE;

	if (s->nodes[s->ports[to].node].host == host)
		return to;
	for (uint32_t i = 0; (row = host_port(c, host, i)) != SUBNET_NONE; i++) {
		if (s->ports[row].ethernet != s->ports[to].ethernet ||
		    !subnet_port_active(s, row) ||
		    (s->ports[row].ethernet && !subnet_ethernet_reaches(s, row, to)))
			continue;
		if (found == SUBNET_NONE || i == s->ports[to].host_index)
			found = row;
	}
	return found;
}

/* An active port of the host that leads out of the fabric, and has an address of that family. */
static uint32_t port_to_outside(const struct cm *c, uint32_t host, bool ipv4)
{
	const struct subnet *s = cm_subnet(c);
	struct subnet_gid_entry e;
	uint32_t row;

	for (uint32_t i = 0; (row = host_port(c, host, i)) != SUBNET_NONE; i++) {
		if (!subnet_ethernet_leads_out(s, row) || !subnet_port_active(s, row))
			continue;
		for (uint32_t k = 0; k < subnet_port_gids(&s->ports[row]); k++)
			if (subnet_gid(s, row, k, &e) && e.type == GID_ROCE_V2 &&
			    ib_gid_is_ipv4(&e.gid) == ipv4)
				return row;
	}
	return SUBNET_NONE;
}

/* Tells whether the target is outside of the fabric, and the id's port can be one that leads there. */
static bool target_is_outside(struct cm_id *id, const struct cm_address *asked)
{
	const struct subnet *s = cm_subnet(id->cm);
	uint32_t row = id->row;

	if (cm_address_is_any(asked))
		return false;
	if (row == SUBNET_NONE)
		row = port_to_outside(id->cm, id->file->host, ipv4_of(asked) != NULL);
	if (row == SUBNET_NONE || !subnet_ethernet_leads_out(s, row))
		return false;
	id->row = row;
	id->dst = *asked;
	service_complete(id, &id->dst);
	return true;
}

/* Tells whether the port, or any of the host's if it is SUBNET_NONE, reaches that one. */
static bool target_is_reached(const struct cm_id *id, uint32_t to)
{
	const struct subnet *s = cm_subnet(id->cm);

	if (id->row == SUBNET_NONE)
		return source_for(id->cm, id->file->host, to) != SUBNET_NONE;
	return !s->ports[to].ethernet || !s->ports[id->row].ethernet ||
	       subnet_ethernet_reaches(s, id->row, to);
}

/* Resolves; the id's addresses are set.  Returns 0, or the status of ADDR_ERROR. */
static int target_find(struct cm_id *id, const struct cm_address *asked)
{
	const struct subnet *s = cm_subnet(id->cm);
	bool machine;
	uint32_t to = cm_address_port(id->cm, id->file->host, &id->dst, &machine);

	if ((to == SUBNET_NONE || !target_is_reached(id, to)) && target_is_outside(id, asked))
		return 0;
	if (machine && to != SUBNET_NONE)
		to = machine_target(id, &id->dst, to);
	if (to == SUBNET_NONE)
		return machine ? -ENODEV : -ETIMEDOUT;
	if (id->row == SUBNET_NONE)
		id->row = source_for(id->cm, id->file->host, to);
	if (id->row == SUBNET_NONE || s->ports[id->row].ethernet != s->ports[to].ethernet)
		return -ENETUNREACH;
	id->peer_row = to;
	return 0;
}

union ib_gid cm_port_gid(const struct cm_id *id)
{
	struct subnet_gid_entry e = {0};

	if (cm_subnet(id->cm)->ports[id->row].ethernet)
		return cm_gid_of_address(id->cm, id->row, &id->src);
	(void)subnet_gid(cm_subnet(id->cm), id->row, 0, &e);
	return e.gid;
}

/* A group is everywhere: what is bound stays, else it is the first active Ethernet port. */
static int group_resolve(struct cm_id *id)
{
	uint32_t row;

	for (uint32_t i = 0;
	     id->row == SUBNET_NONE && (row = host_port(id->cm, id->file->host, i)) != SUBNET_NONE;
	     i++)
		if (cm_subnet(id->cm)->ports[row].ethernet &&
		    subnet_port_active(cm_subnet(id->cm), row))
			id->row = row;
	return id->row == SUBNET_NONE ? -ENODEV : 0;
}

int cm_resolve(struct cm_id *id, const struct cm_address *src, const struct cm_address *dst,
	       bool privileged)
{
	int ret = 0;

	if (id->state == CM_IDLE) {
		struct cm_address from = *src;

		if (from.family == AF_UNSPEC)
			from = (struct cm_address){.family = dst->family,
						   .sid = dst->sid & SPACE_MASK,
						   .sid_mask = dst->family == CM_AF_IB ? SPACE_MASK
										       : 0};
		ret = cm_bind(id, &from, privileged);
	}
	if (ret)
		return ret;
	if (id->state != CM_ADDR_BOUND || id->src.family != dst->family)
		return -EINVAL;
	id->dst = *dst;
	address_normalize(id->cm, &id->dst);
	service_complete(id, &id->dst);
	ret = cm_address_is_multicast(&id->dst) ? group_resolve(id) : target_find(id, dst);
	if (ret) {
		cm_event_tell(id, CM_ADDR_ERROR, ret);
		return 0;
	}
	if (cm_address_is_any(&id->src)) {
		const uint16_t port = id->src.port;

		cm_address_of_port(id->cm, id->row, id->dst.family, &id->src);
		id->src.port = port;
		service_complete(id, &id->src);
	}
	if (id->peer_row != SUBNET_NONE && cm_address_is_any(&id->dst)) {
		const uint16_t port = id->dst.port;

		cm_address_of_port(id->cm, id->peer_row, id->dst.family, &id->dst);
		id->dst.port = port;
	}
	id->state = CM_ADDR_IS_RESOLVED;
	cm_event_tell(id, CM_ADDR_RESOLVED, 0);
	return 0;
}

/* ---- for people ---- */

#define PORT_TEXT_BYTES (SUBNET_NAME_BYTES + 24u)

static void port_print(const struct cm *c, uint32_t row, char out[PORT_TEXT_BYTES])
{
	const struct subnet_port *p = &cm_subnet(c)->ports[row];
	const struct subnet_node *node = subnet_node_of(cm_subnet(c), row);
	uint8_t ip[4];

	cm_port_address(node->host, p->host_index, ip);
	snprintf(out, PORT_TEXT_BYTES, "%u.%u.%u.%u (%s)", ip[0], ip[1], ip[2], ip[3], node->name);
}

/* Why an address means the port that it means. */
static const char *meaning_of(const struct cm_id *id, const struct cm_address *a, uint32_t to)
{
	const uint8_t *ip = ipv4_of(a);
	bool machine;
	const uint32_t own = cm_address_port(id->cm, id->file->host, a, &machine);

	if (a->family == CM_AF_IB)
		return "it is the port's GID";
	if (cm_address_is_any(a))
		return "loopback means the own host's first active port";
	if (ip && is_of_fabric(ip))
		return "it is one of the fabric's own addresses";
	if (!machine)
		return "the port's table of GIDs has it";
	if (to != own)
		return "it is an address of the machine, and of the hosts only that one listens "
		       "there";
	return "an address of the machine means the own host's last Ethernet port";
}

void cm_resolve_explain(const struct cm_id *id, const struct cm_address *asked,
			char why[CM_WHY_BYTES])
{
	char address[INET6_ADDRSTRLEN] = "", from[PORT_TEXT_BYTES], to[PORT_TEXT_BYTES];
	struct cm_address a = *asked;
	bool machine;

	if (!inet_ntop(a.family == AF_INET ? AF_INET : AF_INET6,
		       a.ip + (a.family == AF_INET ? 12 : 0), address, sizeof(address)))
		return;
	address_normalize(id->cm, &a);
	if (id->state == CM_ADDR_IS_RESOLVED && id->peer_row == SUBNET_NONE &&
	    !cm_address_is_multicast(&a)) {
		snprintf(why, CM_WHY_BYTES,
			 "%s is outside of the fabric, where the tie of %s leads", address,
			 subnet_port_text(cm_subnet(id->cm), id->row, from));
	} else if (id->state == CM_ADDR_IS_RESOLVED && id->peer_row != SUBNET_NONE) {
		port_print(id->cm, id->peer_row, to);
		port_print(id->cm, id->row, from);
		snprintf(why, CM_WHY_BYTES, "%s is port %s: %s; from %s", address, to,
			 meaning_of(id, &a, id->peer_row), from);
	} else if (id->state != CM_ADDR_IS_RESOLVED &&
		   cm_address_port(id->cm, id->file->host, &a, &machine) == SUBNET_NONE) {
		snprintf(why, CM_WHY_BYTES,
			 "%s is no port's address; 'softhca devices' lists those that are",
			 address);
	} else if (id->state != CM_ADDR_IS_RESOLVED) {
		snprintf(why, CM_WHY_BYTES,
			 "%s cannot be reached: no port of this host is active and on its network",
			 address);
	}
}
