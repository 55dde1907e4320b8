// SPDX-License-Identifier: BSD-2-Clause
/* Building a topology; see topology.h. */
#include "fabric/daemon/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

#define TOPOLOGY_MIN_ROOM 16u

static const char *host_name(const void *hosts, uint32_t index)
{
	return ((const struct topology_host *)hosts)[index].name;
}

/* Makes room for one more element. */
static int array_grow(void *array, uint32_t count, uint32_t *room, size_t bytes)
{
	uint32_t more = *room ? *room * 2 : TOPOLOGY_MIN_ROOM;
	void *old, *p;

	if (count < *room)
		return 0;
	memcpy(&old, array, sizeof(old));
	p = reallocarray(old, more, bytes);
	if (!p)
		return -ENOMEM;
	memcpy(array, &p, sizeof(p));
	*room = more;
	return 0;
}

/* Adds a host's name behind the others. */
static int host_add(struct topology *t, const char *name)
{
	uint32_t at = t->nhosts + t->nswitches;
	int ret;

	if (!fabric_name_ok(name)) {
		log_error("topology: '%s' cannot be the name of a host", name);
		return -EINVAL;
	}
	ret = array_grow(&t->hosts, at, &t->hosts_room, sizeof(*t->hosts));
	if (ret)
		return ret;
	t->hosts[at] = (struct topology_host){.first_hca = t->nhcas};
	text_copy(t->hosts[at].name, sizeof(t->hosts[0].name), name);
	ret = names_add(&t->names, t->hosts, host_name, name);
	if (ret == -EEXIST)
		log_error("topology: two hosts are called '%s'", name);
	return ret;
}

int topology_add_host(struct topology *t, const char *name)
{
	int ret = host_add(t, name);

	if (!ret)
		t->nhosts++;
	return ret;
}

int topology_add_switch(struct topology *t, const char *name, uint32_t node)
{
	struct topology_hca *hca;
	int ret = array_grow(&t->hcas, t->nhcas, &t->hcas_room, sizeof(*t->hcas));

	if (!ret)
		ret = host_add(t, name);
	if (ret)
		return ret;
	t->hosts[t->nhosts + t->nswitches].nhcas = 1;
	t->hosts[t->nhosts + t->nswitches++].nports = 1;
	hca = &t->hcas[t->nhcas++];
	*hca = (struct topology_hca){.nports = 1, .node = node};
	text_copy(hca->name, sizeof(hca->name), "switch0");
	return 0;
}

static bool hca_exists(const struct topology *t, const struct topology_host *host, const char *name)
{
	for (uint32_t i = 0; i < host->nhcas; i++)
		if (!strcmp(t->hcas[host->first_hca + i].name, name))
			return true;
	return false;
}

int topology_add_hca(struct topology *t, const char *name, uint32_t nports, bool ethernet)
{
	struct topology_host *host = &t->hosts[t->nhosts - 1];
	struct topology_hca *hca;
	int ret;

	if (!fabric_name_ok(name) || strlen(name) >= sizeof(hca->name) || !nports) {
		log_error("topology: host '%s': no device can be called '%s' and have %u ports",
			  host->name, name, nports);
		return -EINVAL;
	}
	if (hca_exists(t, host, name)) {
		log_error("topology: host '%s' has two devices '%s'", host->name, name);
		return -EEXIST;
	}
	if (nports > SLOT_PORTS - host->nports) {
		log_error("topology: host '%s': more than %u ports with device '%s'", host->name,
			  SLOT_PORTS, name);
		return -ENOSPC;
	}
	ret = array_grow(&t->hcas, t->nhcas, &t->hcas_room, sizeof(*t->hcas));
	if (ret)
		return ret;
	hca = &t->hcas[t->nhcas++];
	*hca = (struct topology_hca){.nports = nports, .ethernet = ethernet};
	text_copy(hca->name, sizeof(hca->name), name);
	host->nhcas++;
	host->nports += nports;
	return 0;
}

static int topology_generate_hcas(struct topology *t, const struct link_types *types,
				  const struct device_names *names)
{
	char name[SUBNET_NAME_BYTES];
	int ret = 0;

	for (uint32_t i = 0; i < types->ndevices && !ret; i++) {
		device_name_of(names, i, name);
		ret = topology_add_hca(t, name, 1, types->ethernet[i]);
	}
	return ret;
}

int topology_generate(struct topology *t, uint32_t hosts, const struct link_types *types,
		      const struct device_names *names)
{
	char name[FABRIC_NAME_BYTES];
	int ret = hosts ? 0 : -EINVAL;

	for (uint32_t i = 1; i <= hosts && !ret; i++) {
		snprintf(name, sizeof(name), "host%u", i);
		ret = topology_add_host(t, name);
		if (!ret)
			ret = topology_generate_hcas(t, types, names);
	}
	return ret;
}

int64_t topology_find_host(const struct topology *t, const char *name)
{
	return names_find(&t->names, t->hosts, host_name, name);
}

static struct topology_hca *find_ethernet(struct topology *t, const char *host, const char *name)
{
	int64_t at = topology_find_host(t, host);

	for (uint32_t i = 0; at >= 0 && i < t->hosts[at].nhcas; i++) {
		struct topology_hca *hca = &t->hcas[t->hosts[at].first_hca + i];

		if (hca->ethernet && !strcmp(hca->name, name))
			return hca;
	}
	return NULL;
}

int topology_choose_netdevs(struct topology *t, const char *text)
{
	/* one byte less than FABRIC_NAME_BYTES, and than the arrays of the other two */
	char host[FABRIC_NAME_BYTES], device[SUBNET_NAME_BYTES], netdev[IF_NAMESIZE];
	struct topology_hca *hca;

	static_assert(FABRIC_NAME_BYTES == 64 && SUBNET_NAME_BYTES == 64 && IF_NAMESIZE == 16,
		      "the widths below");
	for (;;) {
		int n = 0;

		if (sscanf(text, "%63[^/=,]/%63[^/=,]=%15[^/=,]%n", host, device, netdev, &n) != 3)
			return -EINVAL;
		hca = find_ethernet(t, host, device);
		if (!hca)
			return -EINVAL;
		text_copy(hca->netdev, sizeof(hca->netdev), netdev);
		text += n;
		if (!*text)
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

void topology_free(struct topology *t)
{
	names_free(&t->names);
	free(t->hosts);
	free(t->hcas);
	*t = (struct topology){0};
}
