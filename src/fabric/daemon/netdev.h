/* SPDX-License-Identifier: BSD-2-Clause */
/* The network interface of this machine that an Ethernet port stands for. */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

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

/* The first interface that is up, has an IPv4 address and is no loopback; else the loopback. */
void netdev_find(struct netdev *out);
/* The interface of that name; false: there is none. */
bool netdev_named(struct netdev *out, const char *name) must_check;
