// SPDX-License-Identifier: BSD-2-Clause
/* Makes the shared memory of a fabric out of its topology. */
#include "fabric/daemon/fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory_file.h"
#include "base/text.h"
#include "fabric/daemon/address.h"
#include "prm/smp.h"

#define FIRST_LID 1u

/* ---- segments ---- */

/*
 * Opens a shared segment.  Its size is sealed, so that no client can shorten it under the others.
 * Where only the daemon may write, new writable mappings are sealed off too.
 */
static int segment_open(struct segment *s, const char *name, size_t bytes, bool ours_alone)
{
	unsigned seals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	void *p;
	int ret;

	s->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0)
		return -errno;
	ret = memory_file_resize(s->fd, bytes);
	if (ret)
		goto close_fd;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (p == MAP_FAILED) {
		ret = -errno;
		goto close_fd;
	}
	if (ours_alone)
		seals |= F_SEAL_FUTURE_WRITE;
	fcntl(s->fd, F_ADD_SEALS, seals);
	s->memory = p;
	s->bytes = bytes;
	return 0;

close_fd:
	close(s->fd);
	s->fd = -1;
	return ret;
}

static void segment_close(struct segment *s)
{
	if (s->memory)
		munmap(s->memory, s->bytes);
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct segment){.fd = -1};
}

/* ---- the subnet of a topology ---- */

static struct subnet_shape shape_of(const struct topology *t)
{
	struct subnet_shape shape = {.nodes = t->nhcas};

	for (uint32_t h = 0; h < t->nhosts; h++) {
		const struct topology_host *host = &t->hosts[h];

		shape.ports += host->nports;
		for (uint32_t i = 0; i < host->nhcas; i++) {
			const struct topology_hca *hca = &t->hcas[host->first_hca + i];

			shape.gids += hca->nports * address_gids(h, hca->ethernet);
		}
	}
	return shape;
}

static int port_build(struct fabric *f, uint32_t row, uint32_t *lid)
{
	struct subnet_port *p = &f->subnet.ports[row];
	uint32_t host = subnet_node_of(&f->subnet, row)->host;
	int ret;

	p->host_index = row - f->hosts[host].first_port;
	p->guid = address_guid(host, p->host_index);
	ret = p->ethernet ? address_ethernet(f, row) : address_infiniband(f, row, lid);
	if (!ret)
		subnet_set_state(&f->subnet, row, IB_PORT_ACTIVE);
	return ret;
}

static int hca_build(struct fabric *f, uint32_t host, uint32_t device, uint32_t *lid)
{
	const struct topology_host *h = &f->topology.hosts[host];
	const struct topology_hca *hca = &f->topology.hcas[h->first_hca + device];
	uint32_t first_port = f->hosts[host].first_port, port = f->subnet.nports;
	struct subnet_node node = {
		.kind = SUBNET_HCA,
		.host = host,
		.nports = hca->nports,
		.guid = address_guid(host, port - first_port),
		.system_guid = address_guid(host, 0),
		.device = device,
		.type = SMP_NODE_CA,
	};
	int64_t ret;

	text_copy(node.name, sizeof(node.name), hca->name);
	ret = subnet_add_node(&f->subnet, &node, hca->ethernet, address_gids(host, hca->ethernet));
	if (ret < 0)
		return (int)ret;
	for (ret = 0; port < f->subnet.nports && !ret; port++)
		ret = port_build(f, port, lid);
	return (int)ret;
}

static int subnet_build(struct fabric *f)
{
	uint32_t lid = FIRST_LID;
	int ret = 0;

	f->sm_lid = FIRST_LID;
	for (uint32_t h = 0; h < f->topology.nhosts && !ret; h++) {
		f->hosts[h].first_node = f->subnet.nnodes;
		f->hosts[h].first_port = f->subnet.nports;
		for (uint32_t i = 0; i < f->topology.hosts[h].nhcas && !ret; i++)
			ret = hca_build(f, h, i, &lid);
	}
	return ret;
}

/* ---- the whole ---- */

static int segments_open(struct fabric *f, const struct subnet_shape *shape)
{
	int ret =
		segment_open(&f->registry_segment, "softhca-registry", sizeof(*f->registry), true);

	if (!ret)
		ret = segment_open(&f->subnet_segment, "softhca-subnet", subnet_bytes(shape), true);
	if (!ret)
		ret = segment_open(&f->slots_segment, "softhca-slots",
				   REGISTRY_SLOTS * sizeof(*f->slots), false);
	if (ret)
		return ret;
	f->registry = f->registry_segment.memory;
	f->slots = f->slots_segment.memory;
	subnet_format(&f->subnet, f->subnet_segment.memory, shape);
	return 0;
}

int fabric_create(struct fabric *f)
{
	const struct subnet_shape shape = shape_of(&f->topology);
	int ret;

	f->registry_segment.fd = f->subnet_segment.fd = f->slots_segment.fd = -1;
	ret = loop_open(&f->loop);
	f->hosts = calloc(f->topology.nhosts, sizeof(*f->hosts));
	f->base = calloc(shape.ports, sizeof(*f->base));
	if (!f->hosts || !f->base)
		ret = -ENOMEM;
	if (!ret)
		ret = segments_open(f, &shape);
	if (!ret)
		ret = subnet_build(f);
	if (ret) {
		fabric_destroy(f);
		return ret;
	}
	f->registry->model = f->model;
	f->registry->version = REGISTRY_VERSION;
	f->registry->magic = REGISTRY_MAGIC;
	slots_init(f);
	return 0;
}

void fabric_destroy(struct fabric *f)
{
	segment_close(&f->slots_segment);
	segment_close(&f->subnet_segment);
	segment_close(&f->registry_segment);
	loop_close(&f->loop);
	free(f->base);
	free(f->hosts);
	topology_free(&f->topology);
}

int64_t fabric_find_host(const struct fabric *f, const char *name)
{
	return name[0] ? topology_find_host(&f->topology, name) : 0;
}

uint32_t fabric_find_port(const struct fabric *f, uint32_t host, const char *hca, uint32_t number)
{
	const struct topology_host *h = &f->topology.hosts[host];

	for (uint32_t i = 0; i < h->nhcas; i++) {
		const struct subnet_node *node = &f->subnet.nodes[f->hosts[host].first_node + i];

		if (!strcmp(node->name, hca))
			return subnet_node_port(node, number);
	}
	return SUBNET_NONE;
}

const char *fabric_host_name(const struct fabric *f, uint32_t row)
{
	return f->topology.hosts[subnet_node_of(&f->subnet, row)->host].name;
}
