/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fabric consists of, as data: hosts and their HCAs.  A generator builds it, and
 * fabric_create makes the subnet from it.  It determines the whole subnet, so two daemons with the
 * same topology make the same fabric.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric/daemon/topology/names.h"
#include "fabric/protocol.h"

#define TOPOLOGY_DEFAULT_HOSTS 2u

struct topology_hca {
	char name[SUBNET_NAME_BYTES]; /* "mlx5_0" */
	uint32_t nports;
	bool ethernet;
	uint32_t node; /* node of the plan; Ethernet has none */
	/* Ethernet: the machine's interface that it stands for, if one was chosen. */
	char netdev[IF_NAMESIZE];
};

struct topology_host {
	char name[FABRIC_NAME_BYTES];
	uint32_t first_hca; /* the host's other HCAs follow */
	uint32_t nhcas;
	uint32_t nports; /* ports of all its HCAs */
};

/* Programs can run on switches too, at their port 0; such hosts come after all others. */
struct topology {
	struct topology_host *hosts;
	uint32_t nhosts, nswitches, hosts_room;
	struct topology_hca *hcas;
	uint32_t nhcas, hcas_room;
	struct names names; /* of the hosts */
};

/* Begins a host.  0; -EINVAL: not a name; -EEXIST: another host has it; -ENOMEM. */
int topology_add_host(struct topology *t, const char *name) must_check;
/*
 * Adds an HCA to the host that was begun last.  0; -EINVAL: not a name or no port; -EEXIST: another
 * HCA of that host has the name; -ENOSPC: more ports than a host can have; -ENOMEM.
 */
int topology_add_hca(struct topology *t, const char *name, uint32_t nports,
		     bool ethernet) must_check;
/* Adds a switch as a host, after all hosts.  Errors as of topology_add_host. */
int topology_add_switch(struct topology *t, const char *name, uint32_t node) must_check;
/* Makes hosts "host1" to "hostN", each with devices of these types.  names: NULL: mlx5_0, ... */
int topology_generate(struct topology *t, uint32_t hosts, const struct link_types *types,
		      const struct device_names *names) must_check;
/*
 * Chooses interfaces of the machine for Ethernet devices: "HOST/DEVICE=INTERFACE", several with
 * commas.  -EINVAL: the text is none, or there is no such device.
 */
int topology_choose_netdevs(struct topology *t, const char *text) must_check;
/* Returns the index of the host, or -ENOENT. */
int64_t topology_find_host(const struct topology *t, const char *name) must_check;
void topology_free(struct topology *t);
