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

/* ---- the whole ---- */

static int segments_open(struct fabric *f, const struct subnet_shape *shape)
{
	int ret =
		segment_open(&f->registry_segment, "softhca-registry", sizeof(*f->registry), true);

	if (!ret)
		ret = segment_open(&f->subnet_segment, "softhca-subnet", subnet_bytes(shape), true);
	if (!ret)
		ret = segment_open(&f->slots_segment, "softhca-slots",
				   registry_traffic_offset(REGISTRY_SLOTS), false);
	if (ret)
		return ret;
	f->registry = f->registry_segment.memory;
	f->slots = f->slots_segment.memory;
	subnet_format(&f->subnet, f->subnet_segment.memory, shape);
	return 0;
}

static uint64_t fabric_host_count(void *user, uint32_t row, enum port_counter counter)
{
	return port_counter_stored(user, row, counter);
}

static void fabric_settle(void *user)
{
	traffic_settle(user);
}

static int fabric_build(struct fabric *f)
{
	struct subnet_shape shape;
	int ret = build_plan(f);

	if (ret)
		return ret;
	shape = build_shape(f);
	f->hosts = calloc(f->topology.nhosts + (size_t)f->topology.nswitches, sizeof(*f->hosts));
	f->base = calloc(shape.ports, sizeof(*f->base));
	f->ends = calloc(shape.ports, sizeof(*f->ends));
	if (!f->hosts || !f->base || !f->ends)
		return -ENOMEM;
	ret = segments_open(f, &shape);
	if (!ret)
		ret = net_open(&f->net, &f->subnet);
	if (ret)
		return ret;
	f->net.host_count = fabric_host_count;
	f->net.settle = fabric_settle;
	f->net.user = f;
	atomic_store(&f->subnet.head->groups_by_table, f->sm_mode == SM_EXTERNAL);
	return build_subnet(f);
}

int fabric_create(struct fabric *f)
{
	int ret;

	f->registry_segment.fd = f->subnet_segment.fd = f->slots_segment.fd = -1;
	ret = loop_open(&f->loop);
	if (!ret)
		ret = fabric_build(f);
	if (!ret) {
		f->registry->model = f->model;
		f->registry->version = REGISTRY_VERSION;
		f->registry->magic = REGISTRY_MAGIC;
		slots_init(f);
		ret = manage_open(f);
	}
	if (ret)
		fabric_destroy(f);
	return ret;
}

void fabric_destroy(struct fabric *f)
{
	descriptions_close(f);
	manage_close(f);
	functions_free(f);
	net_close(&f->net);
	segment_close(&f->slots_segment);
	segment_close(&f->subnet_segment);
	segment_close(&f->registry_segment);
	loop_close(&f->loop);
	free(f->base);
	free(f->ends);
	free(f->hosts);
	plan_free(&f->plan);
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

uint32_t fabric_find_attr(const struct fabric *f, uint32_t host, const struct attr *a)
{
	uint32_t row;

	if (a->group != GROUP_DEVICE)
		return fabric_find_port(f, host, a->hca, a->port);
	row = fabric_find_port(f, host, a->hca, 0);
	return row != SUBNET_NONE ? row : fabric_find_port(f, host, a->hca, 1);
}

const char *fabric_host_name(const struct fabric *f, uint32_t row)
{
	const struct subnet_node *node = subnet_node_of(&f->subnet, row);

	/* No program runs on a router. */
	return node->host == SUBNET_NONE ? node->id : f->topology.hosts[node->host].name;
}
