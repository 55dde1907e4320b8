// SPDX-License-Identifier: BSD-2-Clause
/* Renders attributes of a port as the kernel prints them in sysfs. */
#include "fabric/daemon/fabric.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int gid_text(const union ib_gid *gid, char *buf, size_t size)
{
	int n = 0;

	for (unsigned i = 0; i < 16 && n >= 0 && (size_t)n < size; i += 2)
		n += snprintf(buf + n, size - (size_t)n, "%02x%02x%c", gid->raw[i], gid->raw[i + 1],
			      i == 14 ? '\n' : ':');
	return n;
}

/* What the kernel prints of an entry of the GID table.  Reading it of an empty one, and the interface of
 * an entry of InfiniBand, is an error. */
static int gid_attr_text(const struct fabric *f, uint32_t row, enum attr_group group,
			 uint32_t index, char *buf, size_t size)
{
	static const char *const types[] = {
		[GID_IB_ROCE_V1] = "IB/RoCE v1",
		[GID_ROCE_V2] = "RoCE v2",
	};
	const struct subnet_port *p = &f->subnet.ports[row];
	struct subnet_gid_entry entry;

	if (index >= subnet_port_gids(p))
		return -ENOENT;
	if (!subnet_gid(&f->subnet, row, index, &entry))
		return -EINVAL;
	if (group == GROUP_GID_TYPES)
		return snprintf(buf, size, "%s\n", types[entry.type]);
	return p->netdev[0] ? snprintf(buf, size, "%.15s\n", p->netdev) : -EINVAL;
}

int guid_text(uint64_t guid, char *buf, size_t size)
{
	return snprintf(buf, size, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48) & 0xffff,
			(unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
			(unsigned)guid & 0xffff);
}

static int counter_text(const struct fabric *f, uint32_t row, const struct counter_attr *c,
			char *buf, size_t size)
{
	uint64_t v = c->counter == COUNTER_FIXED
			     ? c->fixed
			     : port_counter_total(f, row, (enum port_counter)c->counter);

	return snprintf(buf, size, "%" PRIu64 "\n", v);
}

int attr_text(const struct fabric *f, uint32_t row, enum attr_group group, uint32_t index,
	      char *buf, size_t size)
{
	const struct subnet_port *p = &f->subnet.ports[row];
	struct subnet_gid_entry entry;

	switch (group) {
	case GROUP_PORT:
		return port_attr_text(p, (enum port_attr)index, buf, size);
	case GROUP_COUNTERS:
		if (index >= ncounter_attrs)
			return -ENOENT;
		return counter_text(f, row, &counter_attrs[index], buf, size);
	case GROUP_HW_COUNTERS:
		if (index >= nhw_counter_attrs)
			return -ENOENT;
		return counter_text(f, row, &hw_counter_attrs[index], buf, size);
	case GROUP_GIDS:
		if (index >= subnet_port_gids(p))
			return -ENOENT;
		/* An empty entry reads as zeroes. */
		if (!subnet_gid(&f->subnet, row, index, &entry))
			entry = (struct subnet_gid_entry){0};
		return gid_text(&entry.gid, buf, size);
	case GROUP_GID_TYPES:
	case GROUP_GID_NDEVS:
		return gid_attr_text(f, row, group, index, buf, size);
	case GROUP_PKEYS:
		if (index >= subnet_port_pkeys(p))
			return -ENOENT;
		return snprintf(buf, size, "0x%04x\n", subnet_pkey(p, index));
	case GROUP_DEVICE:
		return snprintf(buf, size, "%.64s\n", net_node_of(&f->net, row)->description);
	}
	return -ENOENT;
}

int attr_text_by_path(const struct fabric *f, const char *host, const char *path, char *buf,
		      size_t size)
{
	int64_t h = fabric_find_host(f, host);
	struct attr attr;
	uint32_t row;

	if (h < 0 || !attr_parse(path, &attr))
		return -ENOENT;
	row = fabric_find_attr(f, (uint32_t)h, &attr);
	if (row == SUBNET_NONE)
		return -ENOENT;
	return attr_text(f, row, attr.group, attr.index, buf, size);
}
