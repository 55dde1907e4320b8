// SPDX-License-Identifier: BSD-2-Clause
/*
 * The device trees: what /sys, /dev and /proc/sys show of the devices of each host, as plain files below
 * hosts/<host>/ of the run-time directory.  The shape is the kernel's: devices live below
 * sys/devices, the classes are symbolic links to them.
 *
 * Most files are alike (a zero counter, an empty GID).  Those are hard links to one file: a link
 * costs one system call, a file costs three, and a program waits for the tree of its host.
 */
#include "fabric/daemon/fabric.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <rdma/rdma_user_cm.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "fabric/device_tree.h"
#include "prm/model.h"
#include "registry/emulation.h"

#define UVERBS_MAJOR	 231
#define UVERBS_MINOR	 192
#define ISSM_MINOR	 64
#define PCI_ROOT	 "sys/devices/pci0000:00"
#define PCI_BUS		 "sys/bus/pci"
#define PCI_DRIVER	 "mlx5_core"
#define PCI_VENDOR	 0x15b3u
#define PCI_SUBSYSTEM	 0x0009u
#define PCI_CARD_BUS	 3u /* unless the machine has a device there */
#define PCI_BUSES	 256u
#define PCI_FUNCTIONS	 8u /* of a slot */
#define PCI_CONFIG_BYTES 64u
#define PCI_BAR		 UINT64_C(0x380000000000)
#define PCI_BAR_BYTES	 UINT64_C(0x2000000)
#define PCI_BAR_FLAGS	 UINT64_C(0x14220c) /* memory, 64 bits, prefetchable */
#define CPU_WORDS	 (CPU_SETSIZE / 32)
#define LINK_CACHE	 8u
#define LINK_TEXT_BYTES	 48u
#define TREE_PATH_BYTES	 288u
#define FILE_READ_ONLY	 0444
#define FILE_READ_WRITE	 0644
#define FILE_DEVICE_NODE 0666

struct tree {
	const struct fabric *fabric;
	uint32_t host;
	int root; /* root of the host's tree */
	int error;
	unsigned pci_bus; /* of the card */
	/* Texts that were written lately, and the files that have them. */
	struct {
		char text[LINK_TEXT_BYTES];
		char path[TREE_PATH_BYTES];
	} cache[LINK_CACHE];
	unsigned next;
};

/* Keeps the first error, which makes every later call do nothing, so one check at the end is
 * enough. */
static void tree_failed(struct tree *t, const char *path)
{
	if (!t->error) {
		t->error = -errno;
		log_error("cannot write %s: %s", path, strerror(errno));
	}
}

static bool tree_path(struct tree *t, char *buf, const char *fmt, va_list ap)
{
	if (t->error)
		return false;
	if (vsnprintf(buf, TREE_PATH_BYTES, fmt, ap) >= (int)TREE_PATH_BYTES) {
		errno = ENAMETOOLONG;
		tree_failed(t, buf);
		return false;
	}
	return true;
}

/* Makes the directory and, like mkdir -p, those above it. */
static void printf_like(2, 3) tree_dir(struct tree *t, const char *fmt, ...)
{
	char path[TREE_PATH_BYTES];
	va_list ap;
	bool ok;

	va_start(ap, fmt);
	ok = tree_path(t, path, fmt, ap);
	va_end(ap);
	if (!ok || !mkdirat(t->root, path, 0755) || errno == EEXIST)
		return;
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(t->root, path, 0755) && errno != EEXIST)
			tree_failed(t, path);
		*slash = '/';
	}
	if (mkdirat(t->root, path, 0755) && errno != EEXIST)
		tree_failed(t, path);
}

static bool link_known(struct tree *t, const char *path, const char *text)
{
	for (unsigned i = 0; i < LINK_CACHE; i++)
		if (t->cache[i].path[0] && !strcmp(t->cache[i].text, text))
			return !linkat(t->root, t->cache[i].path, t->root, path, 0);
	return false;
}

static void link_remember(struct tree *t, const char *path, const char *text)
{
	unsigned i = t->next++ % LINK_CACHE;

	text_copy(t->cache[i].text, sizeof(t->cache[i].text), text);
	text_copy(t->cache[i].path, sizeof(t->cache[i].path), path);
}

static void bytes_create(struct tree *t, const char *path, const void *bytes, size_t n, mode_t mode)
{
	int fd = openat(t->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0 || (n && write(fd, bytes, n) != (ssize_t)n))
		tree_failed(t, path);
	if (fd >= 0)
		close(fd);
}

static void file_create(struct tree *t, const char *path, const char *text, mode_t mode)
{
	bytes_create(t, path, text, strlen(text), mode);
}

/*
 * Writes what stands for a device file: the character device 0:0, which the kernel lets every user
 * make and nobody open.  Some file systems (overlayfs) do not have it; a plain file serves there.
 */
static void device_create(struct tree *t, const char *path)
{
	if (!t->error && mknodat(t->root, path, S_IFCHR | FILE_DEVICE_NODE, 0))
		file_create(t, path, "", FILE_DEVICE_NODE);
}

/* Writes a read-only attribute. */
static void printf_like(3, 4) tree_file(struct tree *t, const char *text, const char *fmt, ...)
{
	bool small = strlen(text) < LINK_TEXT_BYTES;
	char path[TREE_PATH_BYTES];
	va_list ap;
	bool ok;

	va_start(ap, fmt);
	ok = tree_path(t, path, fmt, ap);
	va_end(ap);
	if (!ok || (small && link_known(t, path, text)))
		return;
	file_create(t, path, text, FILE_READ_ONLY);
	if (small)
		link_remember(t, path, text);
}

static void printf_like(3, 4) tree_symlink(struct tree *t, const char *to, const char *fmt, ...)
{
	char path[TREE_PATH_BYTES];
	va_list ap;
	bool ok;

	va_start(ap, fmt);
	ok = tree_path(t, path, fmt, ap);
	va_end(ap);
	if (ok && symlinkat(to, t->root, path))
		tree_failed(t, path);
}

/* ---- a port ---- */

/* An attribute that cannot be read is an empty file. */
static void port_attr_file(struct tree *t, const char *dir, const char *name, uint32_t row,
			   enum attr_group group, uint32_t index)
{
	char text[FABRIC_TEXT_BYTES] = "";
	int n = attr_text(t->fabric, row, group, index, text, sizeof(text));

	if (n >= 0 || n == -EINVAL)
		tree_file(t, text, "%s/%s", dir, name);
}

static void counters_write(struct tree *t, const char *dir, uint32_t row, enum attr_group group,
			   const struct counter_attr *table, uint32_t n)
{
	tree_dir(t, "%s", dir);
	for (uint32_t i = 0; i < n; i++)
		port_attr_file(t, dir, table[i].name, row, group, i);
}

static void gids_write(struct tree *t, const char *port, uint32_t row)
{
	static const struct {
		const char *name;
		enum attr_group group;
	} dirs[] = {
		{"gids", GROUP_GIDS},
		{"gid_attrs/types", GROUP_GID_TYPES},
		{"gid_attrs/ndevs", GROUP_GID_NDEVS},
	};
	char dir[TREE_PATH_BYTES + 16], name[24];

	for (size_t k = 0; k < array_size(dirs); k++) {
		snprintf(dir, sizeof(dir), "%s/%s", port, dirs[k].name);
		tree_dir(t, "%s", dir);
		for (uint32_t i = 0; i < subnet_port_gids(&t->fabric->subnet.ports[row]); i++) {
			snprintf(name, sizeof(name), "%u", i);
			port_attr_file(t, dir, name, row, dirs[k].group, i);
		}
	}
}

static void port_write(struct tree *t, const char *ibdev, uint32_t row)
{
	const struct subnet_port *p = &t->fabric->subnet.ports[row];
	char port[TREE_PATH_BYTES], dir[TREE_PATH_BYTES], name[24];

	if (snprintf(port, sizeof(port), "%s/ports/%u", ibdev, p->number) >= (int)sizeof(port))
		return;
	tree_dir(t, "%s", port);
	for (uint32_t i = 0; i < PORT_ATTRS; i++)
		port_attr_file(t, port, port_attr_name[i], row, GROUP_PORT, i);
	gids_write(t, port, row);
	tree_dir(t, "%s/pkeys", port);
	for (uint32_t i = 0; i < subnet_port_pkeys(p); i++) {
		snprintf(name, sizeof(name), "pkeys/%u", i);
		port_attr_file(t, port, name, row, GROUP_PKEYS, i);
	}
	snprintf(dir, sizeof(dir), "%.200s/counters", port);
	counters_write(t, dir, row, GROUP_COUNTERS, counter_attrs, ncounter_attrs);
	snprintf(dir, sizeof(dir), "%.200s/hw_counters", port);
	counters_write(t, dir, row, GROUP_HW_COUNTERS, hw_counter_attrs, nhw_counter_attrs);
}

/* ---- a device ---- */

/* The device is software, so it is local to every CPU. */
static void cpus_write(struct tree *t, const char *pci)
{
	char mask[CPU_WORDS * 9 + 2], list[256];
	uint32_t words[CPU_WORDS] = {0};
	int last = 0, first = -1, n = 0, m = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set))
		CPU_SET(0, &set);
	list[0] = '\0';
	for (int cpu = 0; cpu <= CPU_SETSIZE; cpu++) {
		bool in = cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set);

		if (in) {
			words[cpu / 32] |= 1u << (cpu % 32);
			last = cpu;
			if (first < 0)
				first = cpu;
		} else if (first >= 0) {
			if (n < (int)sizeof(list) - 32)
				n += snprintf(list + n, sizeof(list) - (size_t)n,
					      first == last ? "%s%d" : "%s%d-%d", n ? "," : "",
					      first, last);
			first = -1;
		}
	}
	for (int w = last / 32; w >= 0; w--)
		m += snprintf(mask + m, sizeof(mask) - (size_t)m, "%08x%c", words[w],
			      w ? ',' : '\n');
	snprintf(list + n, sizeof(list) - (size_t)n, "\n");
	tree_file(t, mask, "%s/local_cpus", pci);
	tree_file(t, list, "%s/local_cpulist", pci);
}

static const struct model *model_of(const struct tree *t)
{
	return &models[t->fabric->model];
}

/* ---- PCI ---- */

/* The header of the configuration space, which is what the kernel shows to ordinary users. */
static void pci_config_write(struct tree *t, const char *pci, uint32_t device, unsigned subclass)
{
	const uint64_t bar = PCI_BAR + device * PCI_BAR_BYTES;
	const uint16_t words[PCI_CONFIG_BYTES / 2] = {
		[0x00 / 2] = PCI_VENDOR,
		[0x02 / 2] = model_of(t)->device,
		[0x04 / 2] = 0x0406, /* command: memory, bus master, no INTx */
		[0x08 / 2] = 0x0001, /* revision, interface */
		[0x0a / 2] = (uint16_t)(0x0200 | subclass),
		[0x0c / 2] = 0x0010, /* cache line */
		[0x0e / 2] = 0x0080, /* a device of several functions */
		[0x10 / 2] = (uint16_t)bar | 0xc,
		[0x12 / 2] = (uint16_t)(bar >> 16),
		[0x14 / 2] = (uint16_t)(bar >> 32),
		[0x16 / 2] = (uint16_t)(bar >> 48),
		[0x2c / 2] = PCI_VENDOR,
		[0x2e / 2] = PCI_SUBSYSTEM,
		[0x3c / 2] = 0x01ff, /* interrupt: line, pin */
	};
	uint8_t bytes[PCI_CONFIG_BYTES];
	char path[TREE_PATH_BYTES];

	for (unsigned i = 0; i < array_size(words); i++) {
		bytes[2 * i] = (uint8_t)words[i];
		bytes[2 * i + 1] = (uint8_t)(words[i] >> 8);
	}
	snprintf(path, sizeof(path), "%.200s/config", pci);
	if (!t->error)
		bytes_create(t, path, bytes, sizeof(bytes), FILE_READ_ONLY);
}

/* One line for each of the six base addresses, and one for the ROM. */
static void pci_resource_write(struct tree *t, const char *pci, uint32_t device)
{
	const uint64_t bar = PCI_BAR + device * PCI_BAR_BYTES;
	char text[7 * 60];
	int n = 0;

	for (unsigned i = 0; i < 7; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "0x%016" PRIx64 " 0x%016" PRIx64 " 0x%016" PRIx64 "\n", i ? 0 : bar,
			      i ? 0 : bar + PCI_BAR_BYTES - 1, i ? 0 : PCI_BAR_FLAGS);
	tree_file(t, text, "%s/resource", pci);
}

static void pci_names_write(struct tree *t, const char *pci, unsigned subclass)
{
	char alias[96], text[320];

	snprintf(alias, sizeof(alias), "pci:v%08Xd%08Xsv%08Xsd%08Xbc02sc%02Xi00\n", PCI_VENDOR,
		 model_of(t)->device, PCI_VENDOR, PCI_SUBSYSTEM, subclass);
	tree_file(t, alias, "%s/modalias", pci);
	snprintf(text, sizeof(text),
		 "DRIVER=" PCI_DRIVER "\nPCI_CLASS=2%02X00\nPCI_ID=%04X:%04X\n"
		 "PCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\nMODALIAS=%s",
		 subclass, PCI_VENDOR, model_of(t)->device, PCI_VENDOR, PCI_SUBSYSTEM,
		 strrchr(pci, '/') + 1, alias);
	tree_file(t, text, "%s/uevent", pci);
	snprintf(text, sizeof(text), "0x%04x\n", model_of(t)->device);
	tree_file(t, text, "%s/device", pci);
	snprintf(text, sizeof(text), "0x02%02x00\n", subclass);
	tree_file(t, text, "%s/class", pci);
}

/*
 * The network interface is one of the machine's.  Its attributes lead to the machine's, so they are
 * live; only what says to which device it belongs is ours.
 */
static void net_write(struct tree *t, const char *pci, const char *netdev)
{
	static const char *const own[] = {".", "..", "device", "subsystem", "dev_port"};
	char path[64], machine[PATH_MAX], to[TREE_PATH_BYTES];
	const struct dirent *e;
	DIR *dir;

	tree_dir(t, "%s/net/%s", pci, netdev);
	snprintf(to, sizeof(to), "../../..%s", strrchr(pci, '/'));
	tree_symlink(t, to, "%s/net/%s/device", pci, netdev);
	tree_symlink(t, "../../../../../class/net", "%s/net/%s/subsystem", pci, netdev);
	tree_file(t, "0\n", "%s/net/%s/dev_port", pci, netdev);
	snprintf(to, sizeof(to), "../../%.100s/net/%s", pci + strlen("sys/"), netdev);
	tree_symlink(t, to, "sys/class/net/%s", netdev);
	/* The class's name of the interface leads to the tree's directory. */
	snprintf(path, sizeof(path), "/sys/class/net/%s", netdev);
	dir = realpath(path, machine) ? opendir(machine) : NULL;
	while (dir && (e = readdir(dir))) {
		bool skip = false;

		for (size_t i = 0; i < array_size(own); i++)
			skip |= !strcmp(e->d_name, own[i]);
		if (snprintf(to, sizeof(to), "%s/%s", machine, e->d_name) >= (int)sizeof(to))
			skip = true;
		if (!skip)
			tree_symlink(t, to, "%s/net/%s/%.100s", pci, netdev, e->d_name);
	}
	if (dir)
		closedir(dir);
}

static void pci_write(struct tree *t, const char *pci, const struct subnet_port *p, uint32_t device)
{
	static const struct {
		const char *name;
		const char *text;
	} attrs[] = {
		{"vendor", "0x15b3\n"},
		{"subsystem_vendor", "0x15b3\n"},
		{"subsystem_device", "0x0009\n"},
		{"revision", "0x01\n"},
		{"numa_node", "-1\n"},
		{"current_link_speed", "32.0 GT/s PCIe\n"},
		{"current_link_width", "16\n"},
		{"max_link_speed", "32.0 GT/s PCIe\n"},
		{"max_link_width", "16\n"},
		{"enable", "1\n"},
		{"irq", "0\n"},
		{"msi_bus", "1\n"},
		{"ari_enabled", "0\n"},
		{"broken_parity_status", "0\n"},
		{"dma_mask_bits", "64\n"},
		{"consistent_dma_mask_bits", "64\n"},
		{"power_state", "D0\n"},
		{"driver_override", "(null)\n"},
	};
	/* Base class 02 network controller, subclass 00 Ethernet or 07 InfiniBand. */
	unsigned subclass = p->ethernet ? 0 : 7;
	const char *address = strrchr(pci, '/') + 1;
	char to[96];

	for (size_t i = 0; i < array_size(attrs); i++)
		tree_file(t, attrs[i].text, "%s/%s", pci, attrs[i].name);
	pci_names_write(t, pci, subclass);
	pci_config_write(t, pci, device, subclass);
	pci_resource_write(t, pci, device);
	cpus_write(t, pci);
	tree_symlink(t, "../../../bus/pci", "%s/subsystem", pci);
	tree_symlink(t, "../../../bus/pci/drivers/" PCI_DRIVER, "%s/driver", pci);
	snprintf(to, sizeof(to), "../../../%s", pci + strlen("sys/"));
	tree_symlink(t, to, PCI_BUS "/devices/%s", address);
	snprintf(to, sizeof(to), "../../../../%s", pci + strlen("sys/"));
	tree_symlink(t, to, PCI_BUS "/drivers/" PCI_DRIVER "/%s", address);
	if (p->netdev[0]) {
		char netdev[sizeof(p->netdev) + 1];

		text_copy(netdev, sizeof(netdev), p->netdev);
		net_write(t, pci, netdev);
	}
}

/* Repeats the links to devices that a directory of the machine has. */
static void machine_links_write(struct tree *t, const char *below)
{
	static const char devices[] = "../devices/";
	char dir[64], path[TREE_PATH_BYTES], text[TREE_PATH_BYTES];
	const struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "/%s", below);
	d = opendir(dir);
	while (d && !t->error && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, text, sizeof(text) - 1);

		text[n > 0 ? n : 0] = '\0';
		if (!strstr(text, devices))
			continue;
		snprintf(path, sizeof(path), "%s/%.100s", below, e->d_name);
		if (symlinkat(text, t->root, path))
			tree_failed(t, path);
	}
	if (d)
		closedir(d);
}

/*
 * The bus shows the machine's own devices, too: programs that drive one of those look there.  This
 * is what was there when the tree was written; a path that is not in the tree is the machine's, as
 * are the directories to which these links lead (preload/resolve.c).
 */
static void machine_pci_write(struct tree *t)
{
	machine_links_write(t, PCI_BUS "/devices");
	machine_links_write(t, PCI_BUS "/drivers/" PCI_DRIVER);
}

static bool machine_has_bus(unsigned bus)
{
	DIR *d = opendir("/" PCI_BUS "/devices");
	const struct dirent *e;
	char address[16];
	bool found = false;

	snprintf(address, sizeof(address), "0000:%02x:", bus);
	while (d && !found && (e = readdir(d)))
		found = !strncmp(e->d_name, address, strlen(address));
	if (d)
		closedir(d);
	return found;
}

/* Two devices cannot have one address. */
static unsigned card_bus(void)
{
	unsigned bus = PCI_CARD_BUS;

	while (bus + 1 < PCI_BUSES && machine_has_bus(bus))
		bus++;
	return bus;
}

static bool is_switch(const struct subnet_node *node)
{
	return node->kind == SUBNET_SWITCH;
}

/* Only port 0 of a switch is a host's. */
static uint32_t node_host_ports(const struct subnet_node *node)
{
	return is_switch(node) ? 1 : node->nports;
}

static void ibdev_write(struct tree *t, const char *pci, const struct subnet_node *node)
{
	char dir[TREE_PATH_BYTES], guid[32], desc[96], path[TREE_PATH_BYTES];

	snprintf(dir, sizeof(dir), "%.160s/infiniband/%s", pci, node->name);
	tree_dir(t, "%s", dir);
	tree_file(t, is_switch(node) ? "2: switch\n" : "1: CA\n", "%s/node_type", dir);
	guid_text(node->guid, guid, sizeof(guid));
	tree_file(t, guid, "%s/node_guid", dir);
	guid_text(node->system_guid, guid, sizeof(guid));
	tree_file(t, guid, "%s/sys_image_guid", dir);
	snprintf(desc, sizeof(desc), "%u.%u.%u\n", model_of(t)->fw_major, MODEL_FW_MINOR,
		 MODEL_FW_SUBMINOR);
	tree_file(t, desc, "%s/fw_ver", dir);
	snprintf(desc, sizeof(desc), "%u\n", model_of(t)->hw_rev);
	tree_file(t, desc, "%s/hw_rev", dir);
	snprintf(desc, sizeof(desc), "MT%u\n", model_of(t)->device);
	tree_file(t, desc, "%s/hca_type", dir);
	snprintf(desc, sizeof(desc), "%s\n", model_of(t)->board);
	tree_file(t, desc, "%s/board_id", dir);
	/* 64 bytes at most (IBTA 14.2.5.2, NodeDescription), and writable. */
	snprintf(desc, sizeof(desc), "%.64s\n", node->description);
	snprintf(path, sizeof(path), "%.200s/node_desc", dir);
	if (!t->error)
		file_create(t, path, desc, FILE_READ_WRITE);
	snprintf(desc, sizeof(desc), "NAME=%.63s\n", node->name);
	tree_file(t, desc, "%s/uevent", dir);
	snprintf(path, sizeof(path), "../../..%.100s", strrchr(pci, '/'));
	tree_symlink(t, path, "%s/device", dir);
	tree_symlink(t, "../../../../../class/infiniband", "%s/subsystem", dir);
	for (uint32_t i = 0; i < node_host_ports(node); i++)
		port_write(t, dir, node->first_port + i);
}

/* ---- devices that have a file in /dev ---- */

struct class_device {
	const char *class;
	char name[16];
	const char *folder; /* of its file, below /dev */
	unsigned major, minor;
	const char *mode; /* what its uevent says of it, a line or nothing */
};

/* Writes what the kernel's core gives to each device of a class that has a file. */
static void class_device_write(struct tree *t, const char *pci, const struct class_device *d,
			       char dir[static TREE_PATH_BYTES])
{
	char text[TREE_PATH_BYTES + 8];

	snprintf(dir, TREE_PATH_BYTES, "%.100s/%s/%s", pci, d->class, d->name);
	tree_dir(t, "%s", dir);
	snprintf(text, sizeof(text), "%u:%u\n", d->major, d->minor);
	tree_file(t, text, "%s/dev", dir);
	snprintf(text, sizeof(text), "MAJOR=%u\nMINOR=%u\nDEVNAME=%s%s\n%s", d->major, d->minor,
		 d->folder, d->name, d->mode);
	tree_file(t, text, "%s/uevent", dir);
	snprintf(text, sizeof(text), "../../..%.100s", strrchr(pci, '/'));
	tree_symlink(t, text, "%s/device", dir);
	snprintf(text, sizeof(text), "../../../../../class/%s", d->class);
	tree_symlink(t, text, "%s/subsystem", dir);
	snprintf(text, sizeof(text), "../../%s", dir + strlen("sys/"));
	tree_symlink(t, text, "sys/class/%s/%s", d->class, d->name);
	tree_symlink(t, text, "sys/dev/char/%u:%u", d->major, d->minor);
	snprintf(text, sizeof(text), "dev/%s%s", d->folder, d->name);
	device_create(t, text);
}

/* Writes one device of a port that carries MADs: umad3 or issm3. */
static void mad_device_write(struct tree *t, const char *pci, const char *kind, unsigned minor,
			     const struct subnet_port *p)
{
	struct class_device d = {"infiniband_mad",	"", "infiniband/", UVERBS_MAJOR,
				 minor + p->host_index, ""};
	char dir[TREE_PATH_BYTES], text[SUBNET_NAME_BYTES + 2];

	snprintf(d.name, sizeof(d.name), "%s%u", kind, p->host_index);
	class_device_write(t, pci, &d, dir);
	snprintf(text, sizeof(text), "%.63s\n", t->fabric->subnet.nodes[p->node].name);
	tree_file(t, text, "%s/ibdev", dir);
	snprintf(text, sizeof(text), "%u\n", p->number);
	tree_file(t, text, "%s/port", dir);
}

/* A port of Ethernet carries MADs, but has no subnet manager. */
static void mad_devices_write(struct tree *t, const char *pci, const struct subnet_node *node)
{
	for (uint32_t i = 0; i < node_host_ports(node); i++) {
		const struct subnet_port *p = &t->fabric->subnet.ports[node->first_port + i];

		mad_device_write(t, pci, "umad", 0, p);
		if (!p->ethernet)
			mad_device_write(t, pci, "issm", ISSM_MINOR, p);
	}
}

static void uverbs_write(struct tree *t, const char *pci, const struct subnet_node *node)
{
	struct class_device d = {
		"infiniband_verbs", "", "infiniband/", UVERBS_MAJOR, UVERBS_MINOR + node->device,
		"DEVMODE=0666\n"};
	char dir[TREE_PATH_BYTES], text[SUBNET_NAME_BYTES + 2];

	snprintf(d.name, sizeof(d.name), "uverbs%u", node->device);
	class_device_write(t, pci, &d, dir);
	snprintf(text, sizeof(text), "%.63s\n", node->name);
	tree_file(t, text, "%s/ibdev", dir);
	tree_file(t, "1\n", "%s/abi_version", dir);
}

/* ---- PCI functions that the card emulates ---- */

/* Writes the entries by which the kernel shows files of userspace I/O. */
static void uio_write(struct tree *t, const char *pci, uint32_t number)
{
	struct class_device d = {"uio", "", "", UIO_MAJOR, number, ""};
	char dir[TREE_PATH_BYTES], text[32];

	snprintf(d.name, sizeof(d.name), "uio%u", number);
	class_device_write(t, pci, &d, dir);
	tree_dir(t, "%s/maps/map0", dir);
	tree_file(t, "virtio-net doorbells\n", "%s/name", dir);
	tree_file(t, SOFTHCA_VERSION "\n", "%s/version", dir);
	tree_file(t, "doorbells\n", "%s/maps/map0/name", dir);
	tree_file(t, "0x0\n", "%s/maps/map0/addr", dir);
	tree_file(t, "0x0\n", "%s/maps/map0/offset", dir);
	snprintf(text, sizeof(text), "0x%x\n", EMULATION_BAR_BYTES);
	tree_file(t, text, "%s/maps/map0/size", dir);
}

/* The device's directory leads to the function, as it does to those of a device with SR-IOV. */
static void function_write(struct tree *t, const char *device_pci, uint32_t number)
{
	char pci[64], text[64];

	snprintf(pci, sizeof(pci), PCI_ROOT "/0000:%02x:%02x.%u", EMULATION_BUS, EMULATION_SLOT,
		 number);
	tree_dir(t, "%s", pci);
	snprintf(text, sizeof(text), "0x%04x\n", EMULATION_VENDOR);
	tree_file(t, text, "%s/vendor", pci);
	tree_file(t, text, "%s/subsystem_vendor", pci);
	snprintf(text, sizeof(text), "0x%04x\n", EMULATION_DEVICE);
	tree_file(t, text, "%s/device", pci);
	tree_file(t, text, "%s/subsystem_device", pci);
	snprintf(text, sizeof(text), "0x%06x\n", EMULATION_CLASS);
	tree_file(t, text, "%s/class", pci);
	tree_file(t, "0x01\n", "%s/revision", pci);
	tree_file(t, "-1\n", "%s/numa_node", pci);
	snprintf(text, sizeof(text), "..%s", strrchr(pci, '/'));
	tree_symlink(t, text, "%s/emulated0", device_pci);
	uio_write(t, pci, number);
}

static void device_write(struct tree *t, const struct subnet_node *node)
{
	char pci[64], to[TREE_PATH_BYTES];

	/* All are functions of one card. */
	snprintf(pci, sizeof(pci), PCI_ROOT "/0000:%02x:%02x.%u", t->pci_bus,
		 node->device / PCI_FUNCTIONS, node->device % PCI_FUNCTIONS);
	tree_dir(t, "%s", pci);
	pci_write(t, pci, &t->fabric->subnet.ports[node->first_port], node->device);
	ibdev_write(t, pci, node);
	snprintf(to, sizeof(to), "../../%s/infiniband/%s", pci + strlen("sys/"), node->name);
	tree_symlink(t, to, "sys/class/infiniband/%s", node->name);
	/* A switch has no queue pairs for programs. */
	if (!is_switch(node))
		uverbs_write(t, pci, node);
	mad_devices_write(t, pci, node);
	if (function_is_there(t->fabric, t->host, node->device))
		function_write(t, pci, node->device);
}

/* The communication manager's file is that of no device. */
static void cm_device_write(struct tree *t)
{
	static const char dir[] = "sys/devices/virtual/misc/rdma_cm";
	char text[96];

	tree_dir(t, "sys/class/misc");
	tree_dir(t, "%s", dir);
	snprintf(text, sizeof(text), "%u:%u\n", CM_MAJOR, CM_MINOR);
	tree_file(t, text, "%s/dev", dir);
	snprintf(text, sizeof(text),
		 "MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/rdma_cm\nDEVMODE=0666\n", CM_MAJOR,
		 CM_MINOR);
	tree_file(t, text, "%s/uevent", dir);
	snprintf(text, sizeof(text), "%u\n", RDMA_USER_CM_ABI_VERSION);
	tree_file(t, text, "%s/abi_version", dir);
	tree_symlink(t, "../../../../class/misc", "%s/subsystem", dir);
	tree_symlink(t, "../../devices/virtual/misc/rdma_cm", "sys/class/misc/rdma_cm");
	tree_symlink(t, "../../devices/virtual/misc/rdma_cm", "sys/dev/char/%u:%u", CM_MAJOR,
		     CM_MINOR);
	device_create(t, "dev/infiniband/rdma_cm");
	tree_dir(t, "proc/sys/net/rdma_ucm");
	snprintf(text, sizeof(text), "%d\n", CM_MAX_BACKLOG);
	tree_file(t, text, "proc/sys/net/rdma_ucm/max_backlog");
}

/*
 * tmpfs lists what is newest first, and libibverbs gives the devices in the order of the directory;
 * a program's default is the first.  A file system that orders by a hash cannot be helped.
 */
static bool lists_newest_first(struct tree *t)
{
	int fd = openat(t->root, "dev/infiniband", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool newest_first = false;
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (!mkdirat(fd, "0", 0700) && !mkdirat(fd, "1", 0700))
		while ((entry = readdir(dir)) && strcmp(entry->d_name, "0") != 0)
			newest_first |= !strcmp(entry->d_name, "1");
	unlinkat(fd, "0", AT_REMOVEDIR);
	unlinkat(fd, "1", AT_REMOVEDIR);
	closedir(dir);
	return newest_first;
}

static int host_write(const struct fabric *f, uint32_t host, int root)
{
	const struct topology_host *h = &f->topology.hosts[host];
	struct tree t = {.fabric = f, .host = host, .root = root, .pci_bus = card_bus()};
	bool newest_first;

	tree_dir(&t, "dev/infiniband");
	tree_dir(&t, "sys/class/infiniband");
	tree_dir(&t, "sys/class/infiniband_verbs");
	tree_dir(&t, "sys/class/infiniband_mad");
	tree_dir(&t, "sys/class/uio");
	tree_dir(&t, "sys/class/net");
	tree_dir(&t, "sys/dev/char");
	tree_dir(&t, PCI_BUS "/devices");
	tree_dir(&t, PCI_BUS "/drivers/" PCI_DRIVER);
	tree_file(&t, "6\n", "sys/class/infiniband_verbs/abi_version");
	tree_file(&t, "5\n", "sys/class/infiniband_mad/abi_version");
	cm_device_write(&t);
	newest_first = h->nhcas > 1 && lists_newest_first(&t);
	for (uint32_t i = 0; i < h->nhcas; i++)
		device_write(&t, &f->subnet.nodes[f->hosts[host].first_node +
						  (newest_first ? h->nhcas - 1 - i : i)]);
	machine_pci_write(&t);
	return t.error;
}

int trees_open(const struct fabric *f)
{
	char path[RUNDIR_BYTES + 8];

	snprintf(path, sizeof(path), "%s/hosts", f->dir);
	return mkdir(path, 0755) ? -errno : 0;
}

/* An earlier attempt that failed may have left files that it could not remove. */
static int host_root_make(const char *path)
{
	if (!mkdir(path, 0755))
		return 0;
	if (errno != EEXIST)
		return -errno;
	rundir_remove_tree(path);
	return mkdir(path, 0755) ? -errno : 0;
}

int tree_write(struct fabric *f, uint32_t host)
{
	char path[RUNDIR_BYTES + FABRIC_NAME_BYTES + 8];
	int root, ret;

	if (f->hosts[host].tree_written)
		return 0;
	snprintf(path, sizeof(path), "%s/hosts/%s", f->dir, f->topology.hosts[host].name);
	ret = host_root_make(path);
	if (ret)
		return ret;
	root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = root < 0 ? -errno : host_write(f, host, root);
	if (root >= 0)
		close(root);
	/* The next lease begins again, so nothing may stay. */
	if (ret)
		rundir_remove_tree(path);
	f->hosts[host].tree_written = !ret;
	return ret;
}
