// SPDX-License-Identifier: BSD-2-Clause
/* A fabric: its hosts, subnet and net are made out of a plan, then its shared memory, and what manages
 * it; see fabric.h. */
#include "fabric/daemon/fabric.h"

#include "base/log.h"
#include "base/memory_file.h"
#include "base/text.h"
#include "fabric/daemon/address.h"
#include "prm/model.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- makes hosts, subnet and net out of a plan ---- */

#define VENDOR_MELLANOX 0x2c9u
#define DEVICE_SWITCH	0xd2f2u /* device number of the switches that we invent */
#define REVISION	0xa1u

/* Describes an adapter as rdma-ndd does, in 64 bytes at most (IBTA 14.2.5.2, NodeDescription): the
 * device's name stays whole. */
static void hca_describe(char *out, size_t size, const char *host, const struct topology_hca *hca)
{
	size_t room = size - 2 - strlen(hca->name);

	if (snprintf(out, size, "%.*s %s", (int)room, host, hca->name) < 0)
		out[0] = '\0';
}

/* ---- a plan for hosts that nobody has described ---- */

/* Its id is unique, also where the names of host and device are too long for one.  No device's name
 * begins with a digit. */
static void hca_identify(char *out, size_t size, const char *host, const struct topology_hca *hca,
			 uint32_t device)
{
	if (snprintf(out, size, "%s-%s", host, hca->name) >= (int)size)
		(void)snprintf(out, size, "%.50s-%u", host, device);
}

static int plan_add_hca(struct fabric *f, uint32_t host, uint32_t device)
{
	struct topology_hca *hca = &f->topology.hcas[f->topology.hosts[host].first_hca + device];
	const char *name = f->topology.hosts[host].name;
	struct plan_node node = {.type = SMP_NODE_CA, .nports = (uint8_t)hca->nports};
	int64_t at;

	hca_identify(node.id, sizeof(node.id), name, hca, device);
	hca_describe(node.description, sizeof(node.description), name, hca);
	at = plan_add_node(&f->plan, &node);
	if (at < 0)
		return (int)at;
	hca->node = (uint32_t)at;
	return 0;
}

static int plan_add_hosts(struct fabric *f)
{
	int ret = 0;

	for (uint32_t h = 0; h < f->topology.nhosts && !ret; h++) {
		const struct topology_host *host = &f->topology.hosts[h];

		for (uint32_t i = 0; i < host->nhcas && !ret; i++) {
			struct topology_hca *hca = &f->topology.hcas[host->first_hca + i];

			if (!hca->ethernet)
				ret = plan_add_hca(f, h, i);
		}
	}
	return ret;
}

/* ---- hosts for a plan ---- */

static bool name_free(const struct fabric *f, const char *name)
{
	return fabric_name_ok(name) && topology_find_host(&f->topology, name) < 0;
}

/*
 * Names the host by the node's description, else by its id, else by its GUID: names of hosts are
 * short, and safe in paths.
 */
static void host_name(const struct fabric *f, const struct plan_node *node,
		      char name[PLAN_NAME_BYTES])
{
	text_copy(name, PLAN_NAME_BYTES, node->description);
	if (name_free(f, name))
		return;
	text_copy(name, PLAN_NAME_BYTES, node->id);
	for (char *c = name; *c; c++)
		if (*c == '#')
			*c = '.';
	if (!name_free(f, name))
		(void)snprintf(name, PLAN_NAME_BYTES, "node%" PRIx64, node->guid);
}

static int topology_add_node(struct fabric *f, uint32_t index)
{
	const struct plan_node *node = &f->plan.nodes[index];
	char name[PLAN_NAME_BYTES];
	int ret;

	host_name(f, node, name);
	if (node->type == SMP_NODE_SWITCH)
		return topology_add_switch(&f->topology, name, index);
	ret = topology_add_host(&f->topology, name);
	if (!ret)
		ret = topology_add_hca(&f->topology, "mlx5_0", node->nports, false);
	if (!ret)
		f->topology.hcas[f->topology.nhcas - 1].node = index;
	return ret;
}

static int topology_add_nodes(struct fabric *f, enum smp_node_type type)
{
	int ret = 0;

	for (uint32_t i = 0; i < f->plan.nnodes && !ret; i++)
		if (f->plan.nodes[i].type == type)
			ret = topology_add_node(f, i);
	return ret;
}

/* Completes the topology from the plan, or the plan from the topology. */
static must_check int build_plan(struct fabric *f)
{
	int ret = 0;

	if (f->plan.nnodes)
		ret = topology_add_nodes(f, SMP_NODE_CA);
	else
		ret = plan_add_hosts(f);
	if (!ret && !f->plan.like_ibsim)
		ret = plan_add_switches(&f->plan);
	return ret ? ret : topology_add_nodes(f, SMP_NODE_SWITCH);
}

static struct subnet_shape build_shape(const struct fabric *f)
{
	const struct topology *t = &f->topology;
	struct subnet_shape shape = {
		.nodes = t->nhcas, .switches = t->nswitches, .gids = t->nswitches * SUBNET_IB_GIDS};

	for (uint32_t h = 0; h < t->nhosts; h++) {
		const struct topology_host *host = &t->hosts[h];

		shape.ports += host->nports;
		for (uint32_t i = 0; i < host->nhcas; i++) {
			const struct topology_hca *hca = &t->hcas[host->first_hca + i];

			shape.gids += hca->nports * address_gids(h, hca->ethernet);
		}
	}
	for (uint32_t i = 0; i < f->plan.nnodes; i++) {
		const struct plan_node *node = &f->plan.nodes[i];

		if (node->type == SMP_NODE_SWITCH)
			shape.ports += node->nports + 1u;
		if (node->type != SMP_NODE_ROUTER)
			continue;
		shape.nodes++;
		shape.ports += node->nports;
		shape.gids += node->nports * SUBNET_IB_GIDS;
	}
	return shape;
}

/* ---- nodes ---- */

struct builder {
	struct fabric *f;
	uint32_t *rows; /* rows of the first ports of the plan's nodes */
	uint32_t lids;	/* how many ports need a LID */
};

static int lid_due(struct builder *b, uint32_t row)
{
	if (++b->lids < SUBNET_LIDS)
		return 0;
	log_error("%s, %s port %u: no LID is left; a subnet has %u of them",
		  fabric_host_name(b->f, row), subnet_node_of(&b->f->subnet, row)->name,
		  b->f->subnet.ports[row].number, SUBNET_LIDS - 1);
	return -ENOSPC;
}

/* Takes over what a file says of the port. */
static int port_plan(struct builder *b, uint32_t row, const struct plan_port *p)
{
	struct net *n = &b->f->net;

	if (p->ext_speed)
		net_info_set(n, row, PI_EXT_SPEED_SUPPORTED, 0xf);
	net_set_enabled(n, row, p->width, p->speed, p->ext_speed);
	if (p->xdr)
		net_add_xdr(n, row);
	if (p->fdr10)
		net_add_fdr10(n, row);
	if (net_end_port(n, row) != row)
		return 0;
	if (p->lid) {
		int ret = net_set_lid(n, row, p->lid, p->lmc);

		if (ret)
			return ret;
	}
	return lid_due(b, row);
}

static struct net_node node_of_plan(const struct fabric *f, const struct plan_node *node)
{
	struct net_node to = {
		.type = node->type,
		.partition_cap = SUBNET_IB_PKEYS,
		.device_id = node->device_id,
		.vendor_id = node->vendor_id,
		.revision = REVISION,
		.guid = node->guid,
		.system_guid = node->system_guid,
	};

	if (!f->plan.like_ibsim) {
		to.vendor_id = VENDOR_MELLANOX;
		to.device_id =
			node->type == SMP_NODE_SWITCH ? DEVICE_SWITCH : model_at(f->model)->device;
	}
	/* The id has 64 bytes and needs no NUL. */
	memcpy(to.id, node->id, sizeof(to.id));
	memcpy(to.description, node->description, sizeof(to.description));
	to.id[sizeof(to.id) - 1] = '\0';
	return to;
}

/* Adds the plan's node to net, once the subnet has its rows from first_port on. */
static int node_build(struct builder *b, uint32_t index, uint32_t node_row)
{
	const struct plan_node *node = &b->f->plan.nodes[index];
	const struct subnet_node *s = &b->f->subnet.nodes[node_row];
	struct net_node to = node_of_plan(b->f, node);
	struct net_switch sw = {.enhanced_port0 = node->enhanced_port0};
	int ret;

	to.guid = s->guid;
	to.system_guid = s->system_guid;
	to.sw = node->type == SMP_NODE_SWITCH ? &sw : NULL;
	for (uint32_t i = 0; b->f->plan.like_ibsim && i < s->nports; i++)
		b->f->subnet.ports[s->first_port + i].guid =
			plan_port_guid(&b->f->plan, node, node->first_port + i);
	ret = net_add_node(&b->f->net, node_row, &to);
	b->rows[index] = s->first_port;
	for (uint32_t i = 0; i < s->nports && !ret; i++)
		ret = port_plan(b, s->first_port + i, &b->f->plan.ports[node->first_port + i]);
	return ret;
}

/* ---- hosts ---- */

/* Gives the ports rows and addresses before net knows them. */
static int ports_name(struct fabric *f, uint32_t host, uint32_t first, bool ethernet)
{
	int ret = 0;

	for (uint32_t row = first; row < f->subnet.nports && !ret; row++) {
		struct subnet_port *p = &f->subnet.ports[row];

		p->host_index = row - f->hosts[host].first_port;
		if (!f->plan.like_ibsim)
			p->guid = address_guid(host, p->host_index);
		if (!ethernet)
			continue;
		atomic_store(&p->width, WIDTH_4X);
		atomic_store(&p->speed, (uint32_t)model_at(f->model)->lane << 8);
		ret = address_ethernet(f, row);
		if (!ret)
			subnet_set_state(&f->subnet, row, IB_PORT_ACTIVE);
	}
	return ret;
}

static int hca_build(struct builder *b, uint32_t host, uint32_t device)
{
	struct fabric *f = b->f;
	const struct topology_hca *hca =
		&f->topology.hcas[f->topology.hosts[host].first_hca + device];
	uint32_t first = f->subnet.nports;
	struct subnet_node node = {
		.kind = SUBNET_HCA,
		.host = host,
		.nports = hca->nports,
		.guid = address_guid(host, first - f->hosts[host].first_port),
		.system_guid = address_guid(host, 0),
		.device = device,
		.type = SMP_NODE_CA,
	};
	struct net_node ethernet = {.type = SMP_NODE_CA};
	int64_t row;
	int ret;

	if (f->plan.like_ibsim) {
		node.guid = f->plan.nodes[hca->node].guid;
		node.system_guid = f->plan.nodes[hca->node].system_guid;
	}
	text_copy(node.name, sizeof(node.name), hca->name);
	row = subnet_add_node(&f->subnet, &node, hca->ethernet, address_gids(host, hca->ethernet));
	if (row < 0)
		return (int)row;
	ret = ports_name(f, host, first, hca->ethernet);
	if (ret)
		return ret;
	hca_describe(ethernet.description, sizeof(ethernet.description),
		     f->topology.hosts[host].name, hca);
	ethernet.guid = node.guid;
	ethernet.system_guid = node.system_guid;
	return hca->ethernet ? net_add_node(&f->net, (uint32_t)row, &ethernet)
			     : node_build(b, hca->node, (uint32_t)row);
}

static int hosts_build(struct builder *b)
{
	struct fabric *f = b->f;
	int ret = 0;

	for (uint32_t h = 0; h < f->topology.nhosts && !ret; h++) {
		f->hosts[h].first_node = f->subnet.nnodes;
		f->hosts[h].first_port = f->subnet.nports;
		for (uint32_t i = 0; i < f->topology.hosts[h].nhcas && !ret; i++)
			ret = hca_build(b, h, i);
	}
	return ret;
}

/* ---- switches and routers ---- */

/* host: SUBNET_NONE for routers. */
static int between_build(struct builder *b, uint32_t index, uint32_t host)
{
	struct fabric *f = b->f;
	const struct plan_node *plan = &f->plan.nodes[index];
	bool is_switch = plan->type == SMP_NODE_SWITCH;
	struct subnet_node node = {
		.kind = is_switch ? SUBNET_SWITCH : SUBNET_REMOTE,
		.host = host,
		.nports = plan->nports + (is_switch ? 1u : 0u),
		.guid = plan->guid,
		.system_guid = plan->system_guid,
		.type = plan->type,
	};
	int64_t row;

	text_copy(node.name, sizeof(node.name), is_switch ? "switch0" : "router0");
	row = subnet_add_node(&f->subnet, &node, false, SUBNET_IB_GIDS);
	return row < 0 ? (int)row : node_build(b, index, (uint32_t)row);
}

static int switches_build(struct builder *b)
{
	struct fabric *f = b->f;
	int ret = 0;

	for (uint32_t i = 0; i < f->topology.nswitches && !ret; i++) {
		uint32_t host = f->topology.nhosts + i;

		f->hosts[host].first_node = f->subnet.nnodes;
		f->hosts[host].first_port = f->subnet.nports;
		ret = between_build(b, f->topology.hcas[f->topology.hosts[host].first_hca].node,
				    host);
	}
	for (uint32_t i = 0; i < f->plan.nnodes && !ret; i++)
		if (f->plan.nodes[i].type == SMP_NODE_ROUTER)
			ret = between_build(b, i, SUBNET_NONE);
	return ret;
}

/* ---- the whole ---- */

static uint32_t row_of_port(const struct builder *b, uint32_t port)
{
	uint32_t node = plan_node_of(&b->f->plan, port);

	return b->rows[node] + port - b->f->plan.nodes[node].first_port;
}

/*
 * A file may say of the ends of a link that they run at different rates, as a program saw it while
 * the link was failing.  So each end says what its line does, until the link trains again.
 */
static void rates_build(struct builder *b, uint32_t port)
{
	const struct plan_port *p = &b->f->plan.ports[port];
	const struct plan_port *peer = &b->f->plan.ports[p->cable];
	const struct net_rate rate = {p->width, p->speed, p->ext_speed, p->xdr, p->fdr10};

	if (p->rated &&
	    (p->width != peer->width || p->speed != peer->speed ||
	     p->ext_speed != peer->ext_speed || p->xdr != peer->xdr || p->fdr10 != peer->fdr10))
		net_set_rate(&b->f->net, row_of_port(b, port), &rate);
}

static void cables_build(struct builder *b)
{
	const struct plan *p = &b->f->plan;

	for (uint32_t port = 0; port < p->nports; port++)
		if (p->ports[port].cable != PLAN_NONE && port < p->ports[port].cable)
			net_cable(&b->f->net, row_of_port(b, port),
				  row_of_port(b, p->ports[port].cable));
	for (uint32_t port = 0; port < p->nports; port++)
		if (p->ports[port].cable != PLAN_NONE)
			rates_build(b, port);
}

static must_check int build_subnet(struct fabric *f)
{
	struct builder b = {.f = f};
	int ret;

	f->net.like_ibsim = f->plan.like_ibsim;
	f->net.card_lane = model_at(f->model)->lane;
	b.rows = calloc(f->plan.nnodes + 1u, sizeof(*b.rows));
	ret = b.rows ? hosts_build(&b) : -ENOMEM;
	if (!ret)
		ret = switches_build(&b);
	if (!ret)
		cables_build(&b);
	free(b.rows);
	plan_free(&f->plan);
	return ret;
}

/* ---- opens what manages the subnet, from the bottom to the top ---- */

/* Opens the agents that every port has. */
static int agents_open(struct fabric *f)
{
	int ret = sma_open(&f->sma, &f->mad);

	if (ret)
		return ret;
	ret = pma_open(&f->pma, &f->mad);
	if (ret)
		sma_close(&f->sma);
	return ret;
}

static void agents_close(struct fabric *f)
{
	pma_close(&f->pma);
	sma_close(&f->sma);
}

/* Opens the agents of the ports, the subnet manager, and the other ends of the device files. */
static must_check int manage_open(struct fabric *f)
{
	int ret = mad_open(&f->mad, &f->net, &f->loop);

	if (ret)
		return ret;
	ret = agents_open(f);
	if (ret)
		goto close_mad;
	ret = sm_open(&f->sm, &f->mad, f->sm_mode);
	if (ret)
		goto close_agents;
	if (f->sm_priority)
		sm_negotiate(&f->sm, f->sm_priority, &f->sma);
	umad_open(&f->umad, &f->mad, &f->sm);
	cm_open(&f->cm, &f->mad);
	f->managed = true;
	return 0;

close_agents:
	agents_close(f);
close_mad:
	mad_close(&f->mad);
	return ret;
}

static void manage_close(struct fabric *f)
{
	if (!f->managed)
		return;
	f->managed = false;
	cm_close(&f->cm);
	umad_close(&f->umad);
	sm_close(&f->sm);
	agents_close(f);
	mad_close(&f->mad);
}

void manage_links(struct fabric *f)
{
	sm_catch_up(&f->sm);
}

/* ---- makes the shared memory of a fabric out of its topology ---- */

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
	uint32_t room;
	int ret = build_plan(f);

	if (ret)
		return ret;
	shape = build_shape(f);
	room = shape.ports ? shape.ports : 1;
	f->hosts = calloc(f->topology.nhosts + (size_t)f->topology.nswitches, sizeof(*f->hosts));
	f->base = calloc(room, sizeof(*f->base));
	f->ends = calloc(room, sizeof(*f->ends));
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
