// SPDX-License-Identifier: BSD-2-Clause
/* See request.h. */
#include "driver/netlink/request.h"

#include <errno.h>
#include <string.h>

#include "base/capability.h"
#include "driver/runtime/process.h"

/* What takes a command: without NLM_F_DUMP, and with it. */
struct netlink_command {
	netlink_handler *get, *dump;
	bool admin; /* for those who may change devices */
};

static int refuse_change(const struct netlink_request *r)
{
	(void)r;
	return -EOPNOTSUPP;
}

static const struct netlink_command commands[RDMA_NLDEV_NUM_OPS] = {
	[RDMA_NLDEV_CMD_GET] = {netlink_get, netlink_get_dump, false},
	[RDMA_NLDEV_CMD_SET] = {refuse_change, NULL, true},
	[RDMA_NLDEV_CMD_NEWLINK] = {refuse_change, NULL, true},
	[RDMA_NLDEV_CMD_DELLINK] = {refuse_change, NULL, true},
	[RDMA_NLDEV_CMD_PORT_GET] = {netlink_port_get, netlink_port_get_dump, false},
	[RDMA_NLDEV_CMD_SYS_GET] = {netlink_system, NULL, false},
	[RDMA_NLDEV_CMD_SYS_SET] = {refuse_change, NULL, true},
	[RDMA_NLDEV_CMD_RES_GET] = {netlink_summary, netlink_summary_dump, false},
	[RDMA_NLDEV_CMD_RES_QP_GET] = {netlink_qp_get, netlink_qp_dump, false},
	[RDMA_NLDEV_CMD_RES_CM_ID_GET] = {netlink_cm_id_get, netlink_cm_id_dump, false},
	[RDMA_NLDEV_CMD_RES_CQ_GET] = {netlink_cq_get, netlink_cq_dump, false},
	[RDMA_NLDEV_CMD_RES_MR_GET] = {netlink_region_get, netlink_region_dump, false},
	[RDMA_NLDEV_CMD_RES_PD_GET] = {netlink_pd_get, netlink_pd_dump, false},
	[RDMA_NLDEV_CMD_RES_CTX_GET] = {netlink_context_get, netlink_context_dump, false},
	[RDMA_NLDEV_CMD_RES_SRQ_GET] = {netlink_srq_get, netlink_srq_dump, false},
	[RDMA_NLDEV_CMD_GET_CHARDEV] = {netlink_chardev, NULL, false},
	[RDMA_NLDEV_CMD_STAT_SET] = {refuse_change, NULL, true},
	[RDMA_NLDEV_CMD_STAT_GET] = {netlink_statistic, netlink_statistic_dump, false},
	[RDMA_NLDEV_CMD_STAT_DEL] = {refuse_change, NULL, true},
	[RDMA_NLDEV_CMD_RES_QP_GET_RAW] = {refuse_change, refuse_change, true},
	[RDMA_NLDEV_CMD_RES_CQ_GET_RAW] = {refuse_change, refuse_change, true},
	[RDMA_NLDEV_CMD_RES_MR_GET_RAW] = {refuse_change, refuse_change, true},
	[RDMA_NLDEV_CMD_STAT_GET_STATUS] = {netlink_statistic_status, NULL, false},
};

/* ---- reading a request ---- */

static size_t attr_bytes(const struct nlattr *attr)
{
	return attr->nla_len - (size_t)NLA_HDRLEN;
}

static const void *attr_value(const struct nlattr *attr)
{
	return (const uint8_t *)attr + NLA_HDRLEN;
}

bool request_u32(const struct netlink_request *r, uint16_t type, uint32_t *value)
{
	const struct nlattr *attr = r->attrs[type];

	if (!attr || attr_bytes(attr) < sizeof(*value))
		return false;
	memcpy(value, attr_value(attr), sizeof(*value));
	return true;
}

bool request_string(const struct netlink_request *r, uint16_t type, const char **value)
{
	const struct nlattr *attr = r->attrs[type];

	*value = attr ? attr_value(attr) : NULL;
	return attr && memchr(*value, '\0', attr_bytes(attr));
}

/* Lists the attributes of the message; of several of one type the last counts.  What is no whole
 * attribute ends the list, as in the kernel. */
static void attrs_list(struct netlink_request *r)
{
	const uint8_t *at = (const uint8_t *)r->head + NLMSG_HDRLEN;
	size_t left = r->head->nlmsg_len - (size_t)NLMSG_HDRLEN;

	while (left >= (size_t)NLA_HDRLEN) {
		const struct nlattr *attr = (const void *)at;
		const size_t step = NLA_ALIGN(attr->nla_len);

		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > left)
			return;
		if ((attr->nla_type & NLA_TYPE_MASK) < RDMA_NLDEV_ATTR_MAX)
			r->attrs[attr->nla_type & NLA_TYPE_MASK] = attr;
		if (step >= left)
			return;
		at += step;
		left -= step;
	}
}

/* ---- devices ---- */

const struct subnet_node *host_device(const struct fabric_view *v, uint32_t index)
{
	for (uint32_t i = 0; i < v->segments.nports; i++) {
		const struct subnet_node *node =
			subnet_node_of(&v->segments.subnet, v->segments.rows[i]);

		if (node->device == index)
			return node;
	}
	return NULL;
}

const struct subnet_node *request_device(const struct netlink_request *r)
{
	uint32_t index;

	return request_u32(r, RDMA_NLDEV_ATTR_DEV_INDEX, &index) ? host_device(r->view, index)
								 : NULL;
}

bool request_port(const struct netlink_request *r, const struct subnet_node *device, uint32_t *row)
{
	uint32_t number;

	if (!request_u32(r, RDMA_NLDEV_ATTR_PORT_INDEX, &number))
		return false;
	/* Of a switch only port 0 is a program's. */
	if (device->kind == SUBNET_SWITCH && number)
		return false;
	*row = subnet_node_port(device, number);
	return *row != SUBNET_NONE;
}

size_t device_answer_begin(const struct netlink_request *r, const struct subnet_node *device,
			   uint16_t flags)
{
	const size_t begin = answer_begin(r->answers, r->head, r->head->nlmsg_type, flags);
	char name[sizeof(device->name) + 1];

	memcpy(name, device->name, sizeof(device->name));
	name[sizeof(device->name)] = '\0';
	answer_u32(r->answers, RDMA_NLDEV_ATTR_DEV_INDEX, device->device);
	answer_string(r->answers, RDMA_NLDEV_ATTR_DEV_NAME, name);
	return begin;
}

/* ---- execution ---- */

/* The handler of a request; NULL: nothing takes it.  Sets *error where that is not -EINVAL. */
static netlink_handler *handler_of(const struct netlink_request *r, int *error)
{
	const uint16_t type = r->head->nlmsg_type;
	const struct netlink_command *c;

	if (RDMA_NL_GET_CLIENT(type) != RDMA_NL_NLDEV ||
	    RDMA_NL_GET_OP(type) >= array_size(commands))
		return NULL;
	c = &commands[RDMA_NL_GET_OP(type)];
	if (c->admin && !r->admin) {
		*error = -EPERM;
		return NULL;
	}
	return r->head->nlmsg_flags & NLM_F_DUMP ? c->dump : c->get;
}

/* Executes one message.  Returns 0 or a negative errno. */
static int request_execute(struct netlink_request *r, netlink_handler *handler)
{
	struct fabric_view view;
	int error;

	attrs_list(r);
	error = fabric_view_open(&view);
	if (error) {
		process_warn_missing(error);
		/* As if the devices had just been removed. */
		return error == -ENOMEM || error == -EMFILE ? error : -EINVAL;
	}
	r->view = &view;
	error = handler(r);
	fabric_view_close(&view);
	return error;
}

/* The same, and nothing is left of an answer that is not complete. */
static int request_answer(struct netlink_request *r, netlink_handler *handler)
{
	struct answers *a = r->answers;
	const size_t begin = a->used;
	int error = request_execute(r, handler);

	if (a->failed)
		error = -ENOMEM;
	if (error)
		answer_cut(a, begin);
	a->failed = false;
	return error;
}

/* False: there was no memory to tell even of the error. */
static bool message_answer(struct answers *a, const struct nlmsghdr *head, bool capped)
{
	const bool control =
		!(head->nlmsg_flags & NLM_F_REQUEST) || head->nlmsg_type < NLMSG_MIN_TYPE;
	struct netlink_request r = {
		.head = head, .admin = capability_is_effective(CAP_NET_ADMIN), .answers = a};
	const size_t begin = a->used;
	netlink_handler *handler = NULL;
	int error = 0;
	bool failed;

	if (!control) {
		error = -EINVAL;
		handler = handler_of(&r, &error);
	}
	if (handler)
		error = request_answer(&r, handler);
	/* The end of a dump tells of its error, and is never acknowledged. */
	if (handler && head->nlmsg_flags & NLM_F_DUMP)
		answer_done(a, head, error);
	else if (error || head->nlmsg_flags & NLM_F_ACK)
		answer_ack(a, head, error, error && !capped);
	failed = a->failed;
	if (failed)
		answer_cut(a, begin);
	a->failed = false;
	return !failed;
}

int netlink_requests(struct answers *a, const void *datagram, size_t n, bool capped)
{
	const uint8_t *at = datagram;
	int ret = 0;

	while (n >= (size_t)NLMSG_HDRLEN) {
		const struct nlmsghdr *head = (const void *)at;
		size_t step;

		if (head->nlmsg_len < NLMSG_HDRLEN || head->nlmsg_len > n)
			break;
		if (!message_answer(a, head, capped))
			ret = -ENOBUFS;
		step = NLMSG_ALIGN(head->nlmsg_len);
		if (step >= n)
			break;
		at += step;
		n -= step;
	}
	return ret;
}
