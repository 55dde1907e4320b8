// SPDX-License-Identifier: BSD-2-Clause
/* Looks at the machine's interfaces through getifaddrs(3). */
#include "fabric/daemon/netdev.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

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

void netdev_find(struct netdev *out)
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

bool netdev_named(struct netdev *out, const char *name)
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
