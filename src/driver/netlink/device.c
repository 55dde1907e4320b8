// SPDX-License-Identifier: BSD-2-Clause
/* What RDMA netlink says of devices and their ports, of their files and of their counters. */
#include <errno.h>
#include <net/if.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "driver/netlink/request.h"
#include "driver/umad/umad.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/uverbs.h"
#include "fabric/attr.h"
#include "fabric/client/client.h"
#include "fabric/cm.h"
#include "prm/model.h"
#include "prm/smp.h"

/* RDMA_DRIVER_MLX5 of enum rdma_driver_id. */
#define DRIVER_MLX5 1u
#define UVERBS_ABI  1u /* the driver's, not the files' */
#define UMAD_ABI    5u
#define ALL_PORTS   UINT32_MAX
/* The kernel's headers have it since Linux 6.12. */
#define SYS_ATTR_MONITOR_MODE 103u

static const struct subnet_port *port_at(const struct netlink_request *r, uint32_t row)
{
	return &r->view->segments.subnet.ports[row];
}

static bool is_switch(const struct subnet_node *device)
{
	return device->kind == SUBNET_SWITCH;
}

/* ---- devices ---- */

static void device_answer(const struct netlink_request *r, const struct subnet_node *device,
			  uint16_t flags)
{
	const struct model *model = model_at(r->view->segments.registry->model);
	const bool ethernet = port_at(r, device->first_port)->ethernet;
	const size_t begin = device_answer_begin(r, device, flags);
	struct answers *a = r->answers;
	char text[32];

	answer_u32(a, RDMA_NLDEV_ATTR_PORT_INDEX, is_switch(device) ? 0 : device->nports);
	answer_u64(a, RDMA_NLDEV_ATTR_CAP_FLAGS,
		   is_switch(device) ? 0 : udevice_cap_flags(ethernet));
	snprintf(text, sizeof(text), "%u.%u.%u", model->fw_major, MODEL_FW_MINOR,
		 MODEL_FW_SUBMINOR);
	answer_string(a, RDMA_NLDEV_ATTR_FW_VERSION, text);
	answer_u64(a, RDMA_NLDEV_ATTR_NODE_GUID, device->guid);
	answer_u64(a, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, device->system_guid);
	answer_u8(a, RDMA_NLDEV_ATTR_DEV_NODE_TYPE,
		  is_switch(device) ? RDMA_NODE_IB_SWITCH : RDMA_NODE_IB_CA);
	answer_u8(a, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	answer_string(a, RDMA_NLDEV_ATTR_DEV_PROTOCOL, ethernet ? "roce" : "ib");
	answer_end(a, begin);
}

int netlink_get(const struct netlink_request *r)
{
	const struct subnet_node *device = request_device(r);

	if (!device)
		return -EINVAL;
	device_answer(r, device, 0);
	return 0;
}

int netlink_get_dump(const struct netlink_request *r)
{
	const struct subnet_node *device;

	for (uint32_t i = 0; (device = host_device(r->view, i)); i++)
		device_answer(r, device, NLM_F_MULTI);
	return 0;
}

/* ---- ports ---- */

static uint8_t phys_state(const struct subnet_port *p)
{
	if (!p->ethernet)
		return (uint8_t)atomic_load(&p->phys_state);
	return atomic_load(&p->state) >= IB_PORT_INIT ? SMP_PHYS_LINK_UP : SMP_PHYS_POLLING;
}

static void infiniband_answer(const struct netlink_request *r, uint32_t row)
{
	const struct subnet_port *p = port_at(r, row);
	struct subnet_gid_entry first = {0};
	uint64_t prefix = 0;

	if (subnet_gid(&r->view->segments.subnet, row, 0, &first))
		for (unsigned i = 0; i < 8; i++)
			prefix = prefix << 8 | first.gid.raw[i];
	answer_u64(r->answers, RDMA_NLDEV_ATTR_CAP_FLAGS,
		   atomic_load(&p->cap_mask) | (uint64_t)atomic_load(&p->cap_mask2) << 32);
	answer_u64(r->answers, RDMA_NLDEV_ATTR_SUBNET_PREFIX, prefix);
	answer_u32(r->answers, RDMA_NLDEV_ATTR_LID, atomic_load(&p->lid));
	answer_u32(r->answers, RDMA_NLDEV_ATTR_SM_LID, atomic_load(&p->sm_lid));
	answer_u8(r->answers, RDMA_NLDEV_ATTR_LMC, (uint8_t)atomic_load(&p->lmc));
}

/* An interface that the caller has: others would look for it in vain. */
static void netdev_answer(const struct netlink_request *r, const struct subnet_port *p)
{
	char name[sizeof(p->netdev) + 1];
	unsigned index;

	memcpy(name, p->netdev, sizeof(p->netdev));
	name[sizeof(p->netdev)] = '\0';
	index = name[0] ? if_nametoindex(name) : 0;
	if (!index)
		return;
	answer_u32(r->answers, RDMA_NLDEV_ATTR_NDEV_INDEX, index);
	answer_string(r->answers, RDMA_NLDEV_ATTR_NDEV_NAME, name);
}

static void port_answer(const struct netlink_request *r, const struct subnet_node *device,
			uint32_t row, uint16_t flags)
{
	const size_t begin = device_answer_begin(r, device, flags);
	const struct subnet_port *p = port_at(r, row);
	struct answers *a = r->answers;

	answer_u32(a, RDMA_NLDEV_ATTR_PORT_INDEX, p->number);
	if (!p->ethernet)
		infiniband_answer(r, row);
	answer_u8(a, RDMA_NLDEV_ATTR_PORT_STATE, (uint8_t)atomic_load(&p->state));
	answer_u8(a, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, phys_state(p));
	if (p->ethernet)
		netdev_answer(r, p);
	answer_end(a, begin);
}

int netlink_port_get(const struct netlink_request *r)
{
	const struct subnet_node *device = request_device(r);
	uint32_t row;

	if (!device || !request_port(r, device, &row))
		return -EINVAL;
	port_answer(r, device, row, 0);
	return 0;
}

int netlink_port_get_dump(const struct netlink_request *r)
{
	const struct subnet_node *device = request_device(r);
	uint32_t n;

	if (!device)
		return -EINVAL;
	n = is_switch(device) ? 1 : device->nports;
	for (uint32_t i = 0; i < n; i++)
		port_answer(r, device, device->first_port + i, NLM_F_MULTI);
	return 0;
}

/* ---- files in /dev ---- */

struct chardev {
	uint32_t minor;
	uint32_t number; /* at the end of its name */
	uint32_t abi;
};

/* Gives the file of that kind; returns 0 or a negative errno. */
static int chardev_find(const struct netlink_request *r, const char *kind,
			const struct subnet_node *device, uint32_t row, struct chardev *out)
{
	const bool uverbs = !strcmp(kind, "uverbs"), umad = !strcmp(kind, "umad");

	if (!device || (!uverbs && !umad && strcmp(kind, "issm") != 0))
		return -EOPNOTSUPP;
	if (uverbs) {
		*out = (struct chardev){UVERBS_MINOR + device->device, device->device, UVERBS_ABI};
		if (is_switch(device))
			return -EOPNOTSUPP;
		return row == ALL_PORTS ? 0 : -EINVAL;
	}
	if (row == ALL_PORTS)
		return -EINVAL;
	*out = (struct chardev){port_at(r, row)->host_index, port_at(r, row)->host_index, UMAD_ABI};
	if (umad)
		return 0;
	out->minor += ISSM_MINOR;
	return port_at(r, row)->ethernet ? -EOPNOTSUPP : 0;
}

/* A device's number as the kernel gives it in 64 bits. */
static uint64_t chardev_encode(uint32_t major, uint32_t minor)
{
	return (minor & 0xff) | major << 8 | (uint64_t)(minor & ~0xffu) << 12;
}

/* Ends the answer about a file. */
static void chardev_answer_end(const struct netlink_request *r, size_t begin, uint64_t number,
			       uint32_t abi, const char *name)
{
	answer_u64(r->answers, RDMA_NLDEV_ATTR_CHARDEV, number);
	answer_u64(r->answers, RDMA_NLDEV_ATTR_CHARDEV_ABI, abi);
	answer_string(r->answers, RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
	answer_end(r->answers, begin);
}

/* The communication manager's file is that of no device. */
static int cm_chardev(const struct netlink_request *r)
{
	const size_t begin = answer_begin(r->answers, r->head, r->head->nlmsg_type, 0);

	chardev_answer_end(r, begin, chardev_encode(CM_MAJOR, CM_MINOR), RDMA_USER_CM_ABI_VERSION,
			   "rdma_cm");
	return 0;
}

int netlink_chardev(const struct netlink_request *r)
{
	const struct subnet_node *device = NULL;
	uint32_t row = ALL_PORTS;
	struct chardev file;
	const char *kind;
	char name[32];
	size_t begin;
	int ret;

	if (!request_string(r, RDMA_NLDEV_ATTR_CHARDEV_TYPE, &kind))
		return -EINVAL;
	if (request_has(r, RDMA_NLDEV_ATTR_DEV_INDEX)) {
		device = request_device(r);
		if (!device)
			return -EINVAL;
	}
	if (request_has(r, RDMA_NLDEV_ATTR_PORT_INDEX) &&
	    (!device || !request_port(r, device, &row)))
		return -EINVAL;
	if (!device && !strcmp(kind, "rdma_cm"))
		return cm_chardev(r);
	ret = chardev_find(r, kind, device, row, &file);
	if (ret)
		return ret;
	begin = device_answer_begin(r, device, 0);
	snprintf(name, sizeof(name), "%s%u", kind, file.number);
	if (file.abi == UVERBS_ABI)
		answer_u32(r->answers, RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, DRIVER_MLX5);
	chardev_answer_end(r, begin, chardev_encode(UVERBS_MAJOR, file.minor), file.abi, name);
	return 0;
}

/* ---- the subsystem as a whole ---- */

int netlink_system(const struct netlink_request *r)
{
	const size_t begin = answer_begin(r->answers, r->head, r->head->nlmsg_type, 0);

	/* All network namespaces share the devices. */
	answer_u8(r->answers, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
	/* Sockets of the group RDMA_NL_GROUP_NOTIFY hear of devices that come, go or get another name or
	 * interface.  Nothing of that happens to a host while it has programs. */
	answer_u8(r->answers, SYS_ATTR_MONITOR_MODE, 1);
	/* A forked child gets copies of pinned pages, so nobody needs ibv_fork_init. */
	answer_u8(r->answers, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
	answer_end(r->answers, begin);
	return 0;
}

/* ---- counters ---- */

/* The port of a request about counters; returns 0 or -EINVAL. */
static int counted_port(const struct netlink_request *r, const struct subnet_node **device,
			uint32_t *row)
{
	*device = request_device(r);
	return *device && request_port(r, *device, row) ? 0 : -EINVAL;
}

/* sysfs has a file among them that is the period in which the kernel reads them. */
static bool is_counter(const struct counter_attr *c)
{
	return strcmp(c->name, "lifespan") != 0;
}

static void counter_value(struct answers *a, const struct counter_attr *c,
			  const uint64_t totals[PORT_COUNTERS])
{
	size_t entry;

	if (!is_counter(c))
		return;
	entry = answer_nest(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY | NLA_F_NESTED);
	answer_string(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, c->name);
	answer_u64(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
		   c->counter == COUNTER_FIXED ? c->fixed : totals[c->counter]);
	answer_nest_end(a, entry);
}

/* Begins the answer about a port's counters. */
static size_t counters_begin(const struct netlink_request *r, const struct subnet_node *device,
			     uint32_t row, size_t *table)
{
	const size_t begin = device_answer_begin(r, device, 0);

	answer_u32(r->answers, RDMA_NLDEV_ATTR_PORT_INDEX, port_at(r, row)->number);
	*table = answer_nest(r->answers, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS | NLA_F_NESTED);
	return begin;
}

int netlink_statistic(const struct netlink_request *r)
{
	const struct subnet_node *device;
	uint64_t totals[PORT_COUNTERS];
	size_t begin, table;
	uint32_t row;

	if (request_has(r, RDMA_NLDEV_ATTR_STAT_RES))
		/* Counters of single queue pairs: there are none (counters can be bound to none). */
		return -EINVAL;
	if (counted_port(r, &device, &row))
		return -EINVAL;
	if (fabric_port_counters(row, totals))
		return -EINVAL;
	begin = counters_begin(r, device, row, &table);
	for (uint32_t i = 0; i < nhw_counter_attrs; i++)
		counter_value(r->answers, &hw_counter_attrs[i], totals);
	answer_nest_end(r->answers, table);
	answer_end(r->answers, begin);
	return 0;
}

int netlink_statistic_dump(const struct netlink_request *r)
{
	uint32_t kind;

	/* Nobody has bound a counter to a queue pair, or counts faults of a region. */
	return request_u32(r, RDMA_NLDEV_ATTR_STAT_RES, &kind) &&
			       (kind == RDMA_NLDEV_ATTR_RES_QP || kind == RDMA_NLDEV_ATTR_RES_MR)
		       ? 0
		       : -EINVAL;
}

static void counter_name(struct answers *a, uint32_t index)
{
	size_t entry;

	if (!is_counter(&hw_counter_attrs[index]))
		return;
	entry = answer_nest(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY | NLA_F_NESTED);
	answer_string(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, hw_counter_attrs[index].name);
	answer_u32(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, index);
	answer_nest_end(a, entry);
}

int netlink_statistic_status(const struct netlink_request *r)
{
	const struct subnet_node *device;
	size_t begin, table;
	uint32_t row;

	if (counted_port(r, &device, &row))
		return -EINVAL;
	begin = counters_begin(r, device, row, &table);
	for (uint32_t i = 0; i < nhw_counter_attrs; i++)
		counter_name(r->answers, i);
	answer_nest_end(r->answers, table);
	answer_end(r->answers, begin);
	return 0;
}
