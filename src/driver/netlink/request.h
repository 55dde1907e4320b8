/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of RDMA netlink: what comes in a datagram, and who answers which command.  The order of the
 * checks and their errors are those of the kernel's drivers/infiniband/core/nldev.c.
 */
#pragma once

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "driver/netlink/answers.h"
#include "fabric/client/view.h"

struct netlink_request {
	const struct nlmsghdr *head;
	const struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX]; /* by type; NULL: it has none */
	bool admin;					 /* the caller may change devices */
	const struct fabric_view *view;
	struct answers *answers;
};

/* Executes the messages of a datagram.  capped: errors do not repeat the whole request.  Returns
 * -ENOBUFS if there was no memory for an answer. */
int netlink_requests(struct answers *a, const void *datagram, size_t n, bool capped) must_check;

/* ---- what handlers use ---- */

/* Each handler answers one command.  Returns 0 or a negative errno. */
typedef int netlink_handler(const struct netlink_request *r);

/* True if the request has the attribute; gives its value. */
bool request_u32(const struct netlink_request *r, uint16_t type, uint32_t *value) must_check;
/* The attribute as text; false: it has none, or one that does not end. */
bool request_string(const struct netlink_request *r, uint16_t type, const char **value) must_check;
/* The device that DEV_INDEX names; NULL: there is none, or no such attribute. */
const struct subnet_node *request_device(const struct netlink_request *r);
/* Gives the row of the port that PORT_INDEX names; false: the device has no such port. */
bool request_port(const struct netlink_request *r, const struct subnet_node *device,
		  uint32_t *row) must_check;
static inline bool request_has(const struct netlink_request *r, uint16_t type)
{
	return r->attrs[type];
}

/* Devices of the host; they count from 0 without a gap. */
const struct subnet_node *host_device(const struct fabric_view *v, uint32_t index);

/* Begins a message for this request, with the attributes that name the device. */
size_t device_answer_begin(const struct netlink_request *r, const struct subnet_node *device,
			   uint16_t flags);

/* ---- device.c ---- */

netlink_handler netlink_get, netlink_get_dump, netlink_port_get, netlink_port_get_dump,
	netlink_chardev, netlink_system, netlink_statistic, netlink_statistic_dump,
	netlink_statistic_status;

/* ---- resource.c ---- */

netlink_handler netlink_summary, netlink_summary_dump, netlink_qp_get, netlink_qp_dump,
	netlink_cq_get, netlink_cq_dump, netlink_srq_get, netlink_srq_dump, netlink_pd_get,
	netlink_pd_dump, netlink_context_get, netlink_context_dump, netlink_region_get,
	netlink_region_dump, netlink_cm_id_get, netlink_cm_id_dump;
