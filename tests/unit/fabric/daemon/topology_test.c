// SPDX-License-Identifier: BSD-2-Clause
/* Topologies and the fabrics that the daemon makes of them, without a daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "fabric/daemon/fabric.h"

static struct fabric fabric;

static struct fabric *make_fabric(void)
{
	CHECK(!fabric_create(&fabric));
	return &fabric;
}

static void unmake_fabric(void)
{
	fabric_destroy(&fabric);
	memset(&fabric, 0, sizeof(fabric));
}

static void test_refusals(void)
{
	struct topology t = {0};

	CHECK(topology_generate(&t, 0, &link_types_default, NULL) == -EINVAL);
	CHECK(topology_add_host(&t, "../x") == -EINVAL);
	CHECK(!topology_add_host(&t, "a") && topology_add_host(&t, "a") == -EEXIST);
	CHECK(t.nhosts == 1);
	CHECK(topology_add_hca(&t, "", 1, false) == -EINVAL);
	CHECK(topology_add_hca(&t,
			       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			       1, false) == -EINVAL);
	CHECK(topology_add_hca(&t, "mlx5_0", 0, false) == -EINVAL);
	CHECK(!topology_add_hca(&t, "mlx5_0", 2, false));
	CHECK(topology_add_hca(&t, "mlx5_0", 1, false) == -EEXIST);
	CHECK(topology_add_hca(&t, "mlx5_1", SLOT_PORTS - 1, false) == -ENOSPC);
	CHECK(!topology_add_hca(&t, "mlx5_1", SLOT_PORTS - 2, true));
	CHECK(t.nhcas == 2 && t.hosts[0].nports == SLOT_PORTS);
	CHECK(topology_find_host(&t, "b") == -ENOENT && topology_find_host(&t, "a") == 0);
	topology_free(&t);
}

static void test_netdevs(void)
{
	static const char *const refused[] = {
		"",
		"host1",
		"host1/mlx5_1",
		"host1/mlx5_1=",
		"/mlx5_1=lo",
		"host1/mlx5_1=lo,",
		"host1/mlx5_0=lo", /* InfiniBand */
		"host1/mlx5_2=lo",
		"host9/mlx5_1=lo",
		"host1/mlx5_1=0123456789abcdef",
	};
	struct topology t = {0};

	CHECK(!topology_generate(&t, 2, &link_types_default, NULL));
	for (size_t i = 0; i < array_size(refused); i++)
		CHECK(topology_choose_netdevs(&t, refused[i]) == -EINVAL);
	CHECK(!topology_choose_netdevs(&t, "host2/mlx5_1=lo,host1/mlx5_1=0123456789abcde"));
	CHECK(!strcmp(t.hcas[t.hosts[1].first_hca + 1].netdev, "lo"));
	CHECK(!strcmp(t.hcas[t.hosts[0].first_hca + 1].netdev, "0123456789abcde"));
	topology_free(&t);

	/* the port has what its interface has; one that is not there is an error */
	CHECK(!topology_generate(&fabric.topology, 2, &link_types_default, NULL));
	CHECK(!topology_choose_netdevs(&fabric.topology, "host2/mlx5_1=lo"));
	CHECK(!strcmp(make_fabric()->subnet.ports[3].netdev, "lo"));
	unmake_fabric();
}

static int gid_attr(const struct fabric *f, const char *name, char text[static FABRIC_TEXT_BYTES])
{
	char path[FABRIC_PATH_BYTES];

	snprintf(path, sizeof(path), "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/%s", name);
	return attr_text_by_path(f, "a", path, text, FABRIC_TEXT_BYTES);
}

/* Two ports of one device: rows, names of attributes, GUIDs and LIDs of their own. */
static void two_ports(void)
{
	char text[FABRIC_TEXT_BYTES], other[FABRIC_TEXT_BYTES];
	struct fabric *f = &fabric;
	uint32_t row;

	CHECK(!topology_add_host(&f->topology, "a"));
	CHECK(!topology_add_hca(&f->topology, "mlx5_0", 2, false));
	CHECK(!topology_add_hca(&f->topology, "mlx5_1", 1, false));
	f = make_fabric();
	/* Behind them the switch: its own port and 36. */
	CHECK(f->subnet.nports == 3 + 37 && f->subnet.nnodes == 3);
	row = fabric_find_port(f, 0, "mlx5_0", 2);
	CHECK(row == 1 && f->subnet.ports[1].number == 2 && f->subnet.ports[1].host_index == 1);
	CHECK(fabric_find_port(f, 0, "mlx5_1", 1) == 2);
	CHECK(fabric_find_port(f, 0, "mlx5_0", 3) == SUBNET_NONE);
	CHECK(fabric_find_port(f, 0, "mlx5_0", 0) == SUBNET_NONE);
	CHECK(f->subnet.ports[0].guid != f->subnet.ports[1].guid);
	CHECK(f->subnet.ports[1].guid != f->subnet.ports[2].guid);
	CHECK(f->subnet.nodes[0].system_guid == f->subnet.nodes[1].system_guid);
	CHECK(attr_text_by_path(f, "a", "sys/class/infiniband/mlx5_0/ports/1/lid", text,
				sizeof(text)) > 0);
	CHECK(attr_text_by_path(f, "a", "sys/class/infiniband/mlx5_0/ports/2/lid", other,
				sizeof(other)) > 0);
	CHECK(!strcmp(text, "0x1\n") && !strcmp(other, "0x2\n"));
	CHECK(attr_text_by_path(f, "a", "sys/class/infiniband/mlx5_0/ports/3/lid", other,
				sizeof(other)) == -ENOENT);
	CHECK(attr_text_by_path(f, "a", "sys/class/infiniband/mlx5_0/ports/02/lid", other,
				sizeof(other)) == -ENOENT);
	/* what only an entry that is not empty has, and only one of Ethernet */
	CHECK(gid_attr(f, "types/0", text) > 0 && !strcmp(text, "IB/RoCE v1\n"));
	CHECK(gid_attr(f, "ndevs/0", text) == -EINVAL);
	snprintf(other, sizeof(other), "types/%u", subnet_port_gids(f->subnet.ports) - 1);
	CHECK(gid_attr(f, other, text) == -EINVAL);
	snprintf(other, sizeof(other), "types/%u", subnet_port_gids(f->subnet.ports));
	CHECK(gid_attr(f, other, text) == -ENOENT);
	unmake_fabric();
}

/* No two ports share an address, however many there are; all are found by each of theirs. */
static void test_large(uint32_t hosts)
{
	struct timespec from, to;
	char name[32];

	clock_gettime(CLOCK_MONOTONIC, &from);
	CHECK(!topology_generate(&fabric.topology, hosts, &link_types_default, NULL));
	make_fabric();
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%u hosts: %.1f ms, %.0f bytes a port\n", hosts,
	       (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6,
	       (double)fabric.subnet_segment.bytes / fabric.subnet.nports);
	CHECK(fabric.subnet.nports > 2 * hosts &&
	      fabric.subnet.nodes[2 * hosts].type == SMP_NODE_SWITCH);
	for (uint32_t row = 0; row < fabric.subnet.nports; row++) {
		const struct subnet_port *p = &fabric.subnet.ports[row];
		struct subnet_gid_entry gid;
		uint32_t n = 0;

		for (; subnet_gid(&fabric.subnet, row, n, &gid); n++)
			CHECK(subnet_port_by_gid(&fabric.subnet, &gid.gid) == row);
		if (net_end_port(&fabric.net, row) != row)
			continue;
		CHECK(n >= (p->ethernet ? 2 : 1));
		CHECK(p->ethernet || subnet_port_by_lid(&fabric.subnet, (uint16_t)p->lid) == row);
	}
	for (uint32_t h = 0; h < hosts; h++) {
		snprintf(name, sizeof(name), "host%u", h + 1);
		CHECK(fabric_find_host(&fabric, name) == h);
	}
	CHECK(fabric_find_host(&fabric, "") == 0 && fabric_find_host(&fabric, "host0") == -ENOENT);
	unmake_fabric();
}

/* More hosts than there are addresses: refused, not cut short. */
static void too_large(void)
{
	CHECK(!topology_generate(&fabric.topology, 43521, &link_types_default, NULL));
	CHECK(fabric_create(&fabric) == -ENOSPC); /* of 198.18.0.0/15 */
	memset(&fabric, 0, sizeof(fabric));
	for (uint32_t h = 0; h < SUBNET_LIDS; h++) {
		char name[32];

		snprintf(name, sizeof(name), "h%u", h);
		CHECK(!topology_add_host(&fabric.topology, name));
		CHECK(!topology_add_hca(&fabric.topology, "mlx5_0", 1, false));
	}
	CHECK(fabric_create(&fabric) == -ENOSPC); /* of LIDs */
	memset(&fabric, 0, sizeof(fabric));
}

/* One of the ports stands for the machine's interface, and the others have addresses of their own. */
static void test_two_ethernet(void)
{
	struct link_types types;

	CHECK(link_types_read("eth,ib,eth", &types) && types.ndevices == 3);
	CHECK(!link_types_read("eth,", &types) && !link_types_read("ib,ib,ib,ib,ib", &types));
	CHECK(!topology_generate(&fabric.topology, 1, &(struct link_types){3, {true, false, true}},
				 NULL));
	CHECK(!fabric_create(&fabric));
	CHECK(!fabric.subnet.ports[0].netdev[0] && fabric.subnet.ports[2].netdev[0]);
	CHECK(memcmp(fabric.subnet.ports[0].mac, fabric.subnet.ports[2].mac, 6) != 0);
	CHECK(!fabric.subnet.ports[1].ethernet);
	fabric_destroy(&fabric);
	memset(&fabric, 0, sizeof(fabric));
}

/* Names of devices: the ids of nodes are unique, also where a name is as long as can be. */
static void test_device_names(void)
{
	char text[4 * 64], longest[64], other[64];
	struct device_names names;

	memset(longest, 'n', sizeof(longest) - 1);
	longest[63] = '\0';
	memcpy(other, longest, sizeof(other));
	other[62] = 'o';
	snprintf(text, sizeof(text), "%s,%s,e_2", longest, other);
	CHECK(!device_names_read(text, 4, &names) && names.n == 3);
	CHECK(device_names_read(text, 2, &names) && device_names_read("", 2, &names));
	CHECK(device_names_read("mlx5_2", 3, &names) && !device_names_read("mlx5_2", 2, &names));
	CHECK(!device_names_read(text, 0, &names));
	CHECK(!topology_generate(&fabric.topology, 2,
				 &(struct link_types){4, {false, false, true, false}}, &names));
	CHECK(!topology_choose_netdevs(&fabric.topology, "host2/e_2=lo"));
	CHECK(topology_choose_netdevs(&fabric.topology, "host2/mlx5_2=lo") == -EINVAL);
	CHECK(!fabric_create(&fabric));
	CHECK(!strcmp(fabric.subnet.nodes[0].name, longest) &&
	      !strcmp(fabric.subnet.nodes[1].name, other) &&
	      !strcmp(fabric.subnet.nodes[3].name, "mlx5_3"));
	CHECK(!strcmp(fabric.subnet.nodes[3].id, "host1-mlx5_3") &&
	      strcmp(fabric.subnet.nodes[0].id, fabric.subnet.nodes[1].id) != 0);
	fabric_destroy(&fabric);
	memset(&fabric, 0, sizeof(fabric));
}

static bool path_exists(const char *dir, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", dir, path);
	return !access(full, F_OK);
}

/* Only the trees that were asked for are there; a second request changes nothing. */
static void test_trees(void)
{
	char dir[] = "/tmp/softhca-tree-XXXXXX";

	CHECK(mkdtemp(dir));
	snprintf(fabric.dir, sizeof(fabric.dir), "%s", dir);
	CHECK(!topology_generate(&fabric.topology, 100, &link_types_default, NULL));
	CHECK(!topology_add_host(&fabric.topology, "wide"));
	CHECK(!topology_add_hca(&fabric.topology, "mlx5_0", 2, false));
	make_fabric();
	CHECK(!trees_open(&fabric) && !path_exists(dir, "hosts/host1"));
	CHECK(!tree_write(&fabric, 99) && !tree_write(&fabric, 99));
	CHECK(path_exists(dir, "hosts/host100/sys/class/infiniband/mlx5_1/ports/1/gids/31"));
	CHECK(!path_exists(dir, "hosts/host100/sys/class/infiniband/mlx5_1/ports/2"));
	CHECK(!path_exists(dir, "hosts/host1") && !path_exists(dir, "hosts/host99"));
	CHECK(!tree_write(&fabric, 100));
	CHECK(path_exists(dir,
			  "hosts/wide/sys/class/infiniband/mlx5_0/ports/2/counters/port_rcv_data"));
	CHECK(!path_exists(dir, "hosts/wide/sys/class/infiniband/mlx5_0/ports/3"));
	rundir_remove(dir);
	unmake_fabric();
}

int main(void)
{
	test_refusals();
	test_netdevs();
	two_ports();
	test_large(1);
	test_large(600);
	test_large(CHECK_TIMES(43520));
	too_large();
	test_two_ethernet();
	test_device_names();
	test_trees();
	return 0;
}
