// SPDX-License-Identifier: BSD-2-Clause
/* mlx5's own steering rules: matchers, rules of them, and actions. */
#include "driver/uverbs/objects/objects.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "base/log.h"
#include "driver/uverbs/core/file.h"
#include "prm/cmd_flow.h"
#include "prm/ste.h"

/* ---- actions ---- */

/*
 * Actions of rules (mlx5dv_create_flow_action_modify_header(3), ..._packet_reformat(3)).  The
 * program names fields of headers as commands do, and ways into tunnels and out of them; the device
 * changes words and headers, as entries of steering do.
 */

/* Fields of set_action_in and add_action_in, and the first of copy_action_in, which is not here. */
#define ACTION_TYPE   PRM_FIELD(0x00, 4)
#define ACTION_FIELD  PRM_FIELD(0x04, 12)
#define ACTION_OFFSET PRM_FIELD(0x13, 5)
#define ACTION_LENGTH PRM_FIELD(0x1b, 5)
#define ACTION_DATA   PRM_FIELD(0x20, 32)

enum { ACTION_SET = 1, ACTION_ADD = 2 };
#define ACTIONS_MAX 64u

/* Fields by the numbers that commands have for them; each is a part of a word. */
static const struct {
	uint8_t field, word, first, bits;
} places[] = {
	{0x01, STE_WORD_SMAC_47_16, 0, 32},
	{0x02, STE_WORD_SMAC_15_0, 16, 16},
	{0x03, STE_WORD_DMAC_TYPE, 0, 16},
	{0x04, STE_WORD_DMAC_47_16, 0, 32},
	{0x05, STE_WORD_DMAC_TYPE, 16, 16},
	{0x06, STE_WORD_L3, 18, 6}, /* DSCP */
	{0x07, STE_WORD_TCP_FLAGS, 16, 9},
	{0x08, STE_WORD_PORTS, 16, 16}, /* TCP */
	{0x09, STE_WORD_PORTS, 0, 16},
	{0x0a, STE_WORD_L3, 8, 8},	/* time to live */
	{0x0b, STE_WORD_PORTS, 16, 16}, /* UDP */
	{0x0c, STE_WORD_PORTS, 0, 16},
	{0x0d, STE_WORD_IPV6_SRC, 0, 32},
	{0x0e, STE_WORD_IPV6_SRC + 1, 0, 32},
	{0x0f, STE_WORD_IPV6_SRC + 2, 0, 32},
	{0x10, STE_WORD_IPV6_SRC + 3, 0, 32},
	{0x11, STE_WORD_IPV6_DST, 0, 32},
	{0x12, STE_WORD_IPV6_DST + 1, 0, 32},
	{0x13, STE_WORD_IPV6_DST + 2, 0, 32},
	{0x14, STE_WORD_IPV6_DST + 3, 0, 32},
	{0x15, STE_WORD_IPV4_SRC, 0, 32},
	{0x16, STE_WORD_IPV4_DST, 0, 32},
	{0x17, STE_WORD_VLAN, 0, 16},
	{0x47, STE_WORD_L3, 8, 8}, /* hop limit */
};

struct uflow_action {
	struct uobj uobj;
	struct flow_modify *modify;
	struct flow_headers *headers; /* headers that an action of the list names, or NULL */
	uint32_t number;
};

static void uflow_action_empty(struct uflow_action *a, struct adapter *adapter)
{
	if (a->headers)
		flow_headers_destroy(adapter, a->headers, a->number);
	free(a->modify);
}

static void uflow_action_free(struct uobj *obj)
{
	uflow_action_empty(container_of(obj, struct uflow_action, uobj), obj->file->hca->adapter);
}

static const struct uobj_class uflow_action_class = {
	.type = UOBJ_FLOW_ACTION,
	.free = uflow_action_free,
};

/* The list of the object; NULL: the object is no such list. */
static const struct flow_modify *uflow_action_modify(struct uobj *obj)
{
	return obj->type == UOBJ_FLOW_ACTION ? container_of(obj, struct uflow_action, uobj)->modify
					     : NULL;
}

static int action_translate(const uint8_t *prm, uint8_t to[FLOW_MODIFY_BYTES])
{
	uint32_t type = prm_get32(prm, ACTION_TYPE), field = prm_get32(prm, ACTION_FIELD);
	uint32_t offset = prm_get32(prm, ACTION_OFFSET), length = prm_get32(prm, ACTION_LENGTH);
	uint32_t bits = length ? length : 32;
	size_t i = 0;

	while (i < array_size(places) && places[i].field != field)
		i++;
	if ((type != ACTION_SET && type != ACTION_ADD) || i == array_size(places)) {
		log_info("uverbs: flow actions that change field 0x%x by 0x%x are not supported",
			 field, type);
		return -EOPNOTSUPP;
	}
	if (type == ACTION_ADD) {
		offset = 0;
		bits = places[i].bits;
	}
	if (offset + bits > places[i].bits)
		return -EINVAL;
	prm_set(to, STE_ACTION_ID, type == ACTION_SET ? STE_ACT_SET : STE_ACT_ADD);
	prm_set(to, STE_MODIFY_FIELD, places[i].word);
	prm_set(to, STE_MODIFY_SHIFT, STE_SHIFT_BASE + places[i].first + offset);
	prm_set(to, STE_MODIFY_LENGTH, bits & 31);
	prm_set(to, STE_MODIFY_DATA, prm_get(prm, ACTION_DATA));
	return 0;
}

static int modify_read(struct ureq *req, struct flow_modify **out)
{
	struct ubuf list = ureq_buf(req, MLX5_IB_ATTR_CREATE_MODIFY_HEADER_ACTIONS_PRM);
	uint8_t prm[ACTIONS_MAX * FLOW_MODIFY_BYTES];
	uint32_t n = (uint32_t)(list.len / FLOW_MODIFY_BYTES);
	struct flow_modify *m;
	int ret;

	if (!n || n > ACTIONS_MAX || list.len % FLOW_MODIFY_BYTES)
		return -EINVAL;
	ret = ubuf_read(&list, prm, list.len);
	if (ret < 0)
		return ret;
	m = calloc(1, sizeof(*m) + (size_t)n * FLOW_MODIFY_BYTES);
	if (!m)
		return -ENOMEM;
	m->n = n;
	for (uint32_t i = 0; i < n && ret == 0; i++)
		ret = action_translate(prm + (size_t)i * FLOW_MODIFY_BYTES, m->action[i]);
	if (ret < 0)
		free(m);
	else
		*out = m;
	return ret;
}

/* Makes the object of an action whose list is there, or whose list failed with 'made'.  It takes
 * the action over, even if it fails. */
static int uflow_action_publish(struct ureq *req, struct uflow_action *a, int made, uint16_t attr)
{
	int ret = made < 0 ? made : uobj_publish(req->file, &a->uobj, &uflow_action_class);

	if (ret < 0) {
		uflow_action_empty(a, req->file->hca->adapter);
		free(a);
		return ret;
	}
	ret = ureq_put_handle(req, attr, a->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&a->uobj, NULL);
	return ret;
}

static int method_modify_header_create(struct ureq *req)
{
	struct uflow_action *a;
	int ret;

	if (!ufile_port(req->file)->ethernet)
		return -EOPNOTSUPP;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	ret = modify_read(req, &a->modify);
	return uflow_action_publish(req, a, ret, MLX5_IB_ATTR_CREATE_MODIFY_HEADER_HANDLE);
}

/* ---- tunnels ---- */

/* What happens to a frame: headers up to an anchor go, and those of the program come. */
static const struct {
	uint8_t table; /* enum mlx5_ib_uapi_flow_table_type */
	uint8_t removed, inserted;
	uint8_t anchor; /* enum ste_anchor */
	uint8_t how;	/* enum ste_insert */
} reformats[] = {
	[MLX5_IB_UAPI_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2] =
		{MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX, 1, 0, STE_ANCHOR_INNER_MAC, 0},
	[MLX5_IB_UAPI_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL] =
		{MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX, 0, 1, 0, STE_INSERT_ENCAP},
	[MLX5_IB_UAPI_FLOW_ACTION_PACKET_REFORMAT_TYPE_L3_TUNNEL_TO_L2] =
		{MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX, 1, 1, STE_ANCHOR_INNER_IP, STE_INSERT_PLAIN},
	[MLX5_IB_UAPI_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L3_TUNNEL] =
		{MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX, 1, 1, STE_ANCHOR_IP, STE_INSERT_ENCAP},
};

static int reformat_read_headers(struct ureq *req, struct uflow_action *a, uint32_t *n)
{
	struct ubuf data = ureq_buf(req, MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_DATA_BUF);
	uint8_t bytes[FLOW_HEADERS_MAX];
	int ret;

	if (!data.len || data.len > sizeof(bytes))
		return -EINVAL;
	ret = ubuf_read(&data, bytes, data.len);
	if (ret < 0)
		return ret;
	*n = (uint32_t)data.len;
	return flow_headers_create(req->file->hca->adapter, bytes, *n, &a->headers, &a->number);
}

static int reformat_make(struct ureq *req, uint32_t type, struct uflow_action *a)
{
	uint32_t n = 0;
	uint8_t *to;
	int ret = 0;

	a->modify = calloc(1, sizeof(*a->modify) + 2 * FLOW_MODIFY_BYTES);
	if (!a->modify)
		return -ENOMEM;
	if (reformats[type].removed) {
		to = a->modify->action[a->modify->n++];
		prm_set(to, STE_ACTION_ID, STE_ACT_REMOVE_HEADERS);
		prm_set(to, STE_END_ANCHOR, reformats[type].anchor);
	}
	if (reformats[type].inserted) {
		ret = reformat_read_headers(req, a, &n);
		to = a->modify->action[a->modify->n++];
		prm_set(to, STE_ACTION_ID, STE_ACT_INSERT_POINTER);
		prm_set(to, STE_INSERT_SIZE, n / 2);
		prm_set(to, STE_INSERT_HOW, reformats[type].how);
		prm_set(to, STE_INSERT_DATA, a->number);
	}
	return ret;
}

static int method_reformat_create(struct ureq *req)
{
	struct uflow_action *a;
	uint32_t type, table = 0;
	int ret = ureq_const(req, MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_TYPE, &type);

	if (ret == 0)
		ret = ureq_const(req, MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_FT_TYPE, &table);
	if (ret < 0)
		return ret;
	if (!ufile_port(req->file)->ethernet || type >= array_size(reformats) ||
	    reformats[type].table != table)
		return -EOPNOTSUPP;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	ret = reformat_make(req, type, a);
	return uflow_action_publish(req, a, ret, MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_HANDLE);
}

/* ---- matchers and rules ---- */

/*
 * mlx5's own steering rules (mlx5dv_create_flow_matcher(3), mlx5dv_create_flow(3)): a matcher says
 * in the device's layout which bits of the headers count, and a rule of it says what they must be.
 * The device steers by fields, so this takes the layout apart, and refuses bits that it does not
 * know.
 */

/* enum ib_flow_flags; in no UAPI header. */
#define FLAG_EGRESS (1u << 2)

struct umatcher {
	struct uobj uobj;
	enum flow_type type;
	enum flow_domain domain;
	uint32_t priority;
	struct fte_headers mask;
};

/* ---- from layout to fields ---- */

/* Fields that are whole bytes in both. */
static const struct {
	uint8_t from, to, bytes;
} fields[] = {
	{offsetof(struct fte_headers, smac), offsetof(struct flow_key, src_mac), 6},
	{offsetof(struct fte_headers, dmac), offsetof(struct flow_key, dst_mac), 6},
	{offsetof(struct fte_headers, ethertype), offsetof(struct flow_key, ether_type), 2},
	{offsetof(struct fte_headers, first_tag), offsetof(struct flow_key, vlan_tag), 2},
	{offsetof(struct fte_headers, ip_protocol), offsetof(struct flow_key, ip_proto), 1},
	{offsetof(struct fte_headers, ip_dscp_ecn), offsetof(struct flow_key, ip_tos), 1},
	{offsetof(struct fte_headers, ttl_hoplimit), offsetof(struct flow_key, ip_ttl), 1},
};

static int matcher_refuse(const char *what)
{
	log_info("uverbs: flow matcher: %s is not supported", what);
	return -EOPNOTSUPP;
}

/* Checks what a mask may ask for. */
static int matcher_check_mask(const struct fte_headers *m)
{
	uint16_t flags = be16_get(m->flags);
	uint16_t version = flags >> FTE_IP_VERSION_SHIFT & FTE_IP_VERSION_MASK;

	if (flags & (FTE_FLAG_SVLAN | FTE_FLAG_FRAG | FTE_TCP_FLAGS))
		return matcher_refuse("service VLAN, fragments or TCP flags");
	if (m->ipv4_ihl[0] || m->ipv4_ihl[1] || m->ipv4_ihl[2])
		return matcher_refuse("header length");
	if (version && version != FTE_IP_VERSION_MASK)
		return matcher_refuse("a part of the IP version");
	if ((m->tcp_port[0].raw || m->tcp_port[1].raw) &&
	    (m->udp_port[0].raw || m->udp_port[1].raw))
		return matcher_refuse("TCP and UDP ports in one rule");
	return 0;
}

static uint8_t ip_version(const struct fte_headers *h)
{
	return be16_get(h->flags) >> FTE_IP_VERSION_SHIFT & FTE_IP_VERSION_MASK;
}

/* Returns 4 or 6 if the rule says so, by version or by type; 0: it does not. */
static uint8_t ip_family(const struct fte_headers *mask, const struct fte_headers *value)
{
	if (ip_version(mask))
		return ip_version(value);
	if (be16_get(mask->ethertype) != 0xffff)
		return 0;
	switch (be16_get(value->ethertype)) {
	case FRAME_TYPE_IPV4:
		return 4;
	case FRAME_TYPE_IPV6:
		return 6;
	default:
		return 0;
	}
}

static bool any_bit(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return true;
	return false;
}

static int flow_add_address(const uint8_t mask[16], const uint8_t value[16], uint8_t version,
			    uint8_t *to_mask, uint8_t *to_value)
{
	size_t skip = version == 4 ? FTE_IPV4_AT : 0;

	if (!any_bit(mask, 16))
		return 0;
	if (version != 4 && version != 6)
		return matcher_refuse("an IP address without a version");
	if (any_bit(mask, skip))
		return -EINVAL;
	memcpy(to_mask, mask + skip, 16 - skip);
	memcpy(to_value, value + skip, 16 - skip);
	return 0;
}

static void flow_add_ports(struct flow_attr *a, const be16 mask[2], const be16 value[2],
			   uint8_t proto)
{
	if (!mask[0].raw && !mask[1].raw)
		return;
	memcpy(a->mask.src_port, &mask[0], 2);
	memcpy(a->mask.dst_port, &mask[1], 2);
	memcpy(a->value.src_port, &value[0], 2);
	memcpy(a->value.dst_port, &value[1], 2);
	a->mask.l4_proto = 0xff;
	a->value.l4_proto = proto;
}

static int flow_add_headers(struct flow_attr *a, const struct fte_headers *mask,
			    const struct fte_headers *value)
{
	uint8_t version = ip_family(mask, value);
	int ret;

	for (size_t i = 0; i < array_size(fields); i++) {
		memcpy((uint8_t *)&a->mask + fields[i].to, (const uint8_t *)mask + fields[i].from,
		       fields[i].bytes);
		memcpy((uint8_t *)&a->value + fields[i].to, (const uint8_t *)value + fields[i].from,
		       fields[i].bytes);
	}
	if (be16_get(mask->flags) & FTE_FLAG_CVLAN) {
		a->mask.vlan = 0xff;
		a->value.vlan = !!(be16_get(value->flags) & FTE_FLAG_CVLAN);
	}
	if (ip_version(mask)) {
		a->mask.ip_version = 0xff;
		a->value.ip_version = version;
	}
	flow_add_ports(a, mask->tcp_port, value->tcp_port, IP_PROTO_TCP);
	flow_add_ports(a, mask->udp_port, value->udp_port, IP_PROTO_UDP);
	ret = flow_add_address(mask->src_ip, value->src_ip, version, a->mask.src_ip,
			       a->value.src_ip);
	if (ret == 0)
		ret = flow_add_address(mask->dst_ip, value->dst_ip, version, a->mask.dst_ip,
				       a->value.dst_ip);
	return ret;
}

/* ---- matchers ---- */

static int matcher_read_type(struct ureq *req, struct umatcher *m)
{
	const struct uattr *a = ureq_attr(req, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE);
	uint16_t priority = 0;

	memcpy(&priority, &a->data, min_u64(a->len, sizeof(priority)));
	switch (a->choice) {
	case MLX5_IB_FLOW_TYPE_NORMAL:
		m->type = FLOW_NORMAL;
		m->priority = priority;
		return 0;
	case MLX5_IB_FLOW_TYPE_ALL_DEFAULT:
		m->type = FLOW_ALL_DEFAULT;
		return 0;
	case MLX5_IB_FLOW_TYPE_MC_DEFAULT:
		m->type = FLOW_MC_DEFAULT;
		return 0;
	default:
		return matcher_refuse("a sniffer");
	}
}

static int matcher_read_mask(struct ureq *req, struct umatcher *m)
{
	struct ubuf mask = ureq_buf(req, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK);
	uint32_t criteria = ureq_u32(req, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA);
	struct ubuf outer = {mask.ptr, min_u64(mask.len, sizeof(m->mask))};
	int ret;

	/* the kernel does not read groups that do not count */
	if (!criteria)
		return 0;
	if (criteria & FTE_MATCH_OUTER_HEADERS) {
		ret = ubuf_read(&outer, &m->mask, sizeof(m->mask));
		if (ret < 0)
			return ret;
	}
	if (criteria & ~FTE_MATCH_OUTER_HEADERS) {
		struct ubuf rest = {uaddr_at(mask.ptr, outer.len), mask.len - outer.len};
		uint8_t none;

		ret = ubuf_read(&rest, &none, 0);
		if (ret < 0)
			return ret == -EOPNOTSUPP ? matcher_refuse("more than the outer headers")
						  : ret;
	}
	if (m->type != FLOW_NORMAL && any_bit((const uint8_t *)&m->mask, sizeof(m->mask)))
		return matcher_refuse("a default rule with a mask");
	return matcher_check_mask(&m->mask);
}

/* Reads where the rules apply. */
static int matcher_read_table(struct ureq *req, struct umatcher *m)
{
	uint32_t flags, type = MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX;
	int ret = ureq_flags(req, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS, FLAG_EGRESS, &flags);

	if (ret == 0)
		ret = ureq_const(req, MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE, &type);
	if (ret < 0)
		return ret;
	if (ureq_attr(req, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS) &&
	    ureq_attr(req, MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE))
		return -EINVAL;
	if (flags & FLAG_EGRESS)
		type = MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX;
	switch (type) {
	case MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX:
		m->domain = FLOW_NIC_RX;
		return 0;
	case MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX:
		m->domain = FLOW_NIC_TX;
		return 0;
	case MLX5_IB_UAPI_FLOW_TABLE_TYPE_FDB:
		m->domain = FLOW_FDB;
		return 0;
	default:
		return matcher_refuse("a table of another kind");
	}
}

static void umatcher_free(struct uobj *obj)
{
	(void)obj; /* the object points to nothing */
}

static const struct uobj_class umatcher_class = {
	.type = UOBJ_MATCHER,
	.free = umatcher_free,
};

static int method_matcher_create(struct ureq *req)
{
	struct umatcher *m;
	int ret;

	if (!ufile_port(req->file)->ethernet)
		return matcher_refuse("an InfiniBand port");
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	ret = matcher_read_table(req, m);
	if (ret == 0)
		ret = matcher_read_type(req, m);
	if (ret == 0)
		ret = matcher_read_mask(req, m);
	if (ret == 0)
		ret = uobj_publish(req->file, &m->uobj, &umatcher_class);
	if (ret < 0) {
		free(m);
		return ret;
	}
	ret = ureq_put_handle(req, MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, m->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&m->uobj, NULL);
	return ret;
}

/* ---- rules ---- */

/* Reads where the frames go, which is at most one place. */
static int flow_read_destination(struct ureq *req, struct flow_attr *a, struct uobj **out)
{
	uint32_t n;
	struct uobj *obj = ureq_obj(req, MLX5_IB_ATTR_CREATE_FLOW_DEST_QP);
	struct uobj *devx = ureq_obj(req, MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX);
	uint32_t flags;
	int ret = ureq_flags(req, MLX5_IB_ATTR_CREATE_FLOW_FLAGS,
			     MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS |
				     MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP,
			     &flags);

	if (ret < 0)
		return ret;
	if (flags & MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS)
		a->pass = true;
	n = !!obj + !!devx + (flags == MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP) + a->pass;
	/* Frames that are sent go on, unless the rule says otherwise. */
	if (!n && a->domain == FLOW_NIC_TX)
		a->pass = true;
	else if (n != 1)
		return -EINVAL;
	*out = obj ? obj : devx;
	if (!*out)
		return 0;
	a->qp = (*out)->class->takes_frames(*out);
	a->table = (*out)->class->table ? (*out)->class->table(*out) : NULL;
	return a->qp || a->table ? 0 : -EINVAL;
}

/* Reads a counter made by DEVX, or gives NULL. */
static int flow_read_counter(struct ureq *req, struct flow_attr *a, struct uobj **out)
{
	struct ubuf handles = ureq_buf(req, MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX);
	uint32_t handle, offset;
	int ret;

	*out = NULL;
	if (!ureq_attr(req, MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX))
		return ureq_attr(req, MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET) ? -EINVAL
											 : 0;
	if (handles.len != sizeof(handle))
		return -EINVAL;
	ret = ubuf_read(&handles, &handle, sizeof(handle));
	if (ret < 0)
		return ret;
	*out = uobj_find(req->file, UOBJ_DEVX, handle, &ret);
	if (!*out)
		return ret;
	a->counter = (*out)->class->counter(*out);
	if (!a->counter)
		return -EINVAL;
	/* programs make counters one at a time, so there is only offset 0 */
	offset = ureq_u32(req, MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET);
	return offset ? -EINVAL : 0;
}

/* Reads at most one action, which changes headers. */
static int flow_read_actions(struct ureq *req, struct flow_attr *a, struct uobj **out)
{
	struct ubuf handles = ureq_buf(req, MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS);
	uint32_t handle;
	int ret;

	*out = NULL;
	a->tag = ureq_u32(req, MLX5_IB_ATTR_CREATE_FLOW_TAG);
	if (a->tag & ~FLOW_TAG_MASK)
		return -EINVAL;
	if (!ureq_attr(req, MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS))
		return 0;
	if (handles.len != sizeof(handle))
		return matcher_refuse("more than one flow action");
	ret = ubuf_read(&handles, &handle, sizeof(handle));
	if (ret < 0)
		return ret;
	*out = uobj_find(req->file, UOBJ_FLOW_ACTION, handle, &ret);
	if (!*out)
		return ret;
	a->modify = uflow_action_modify(*out);
	return 0;
}

static int method_flow_create_mlx5(struct ureq *req)
{
	struct umatcher *m = container_of(ureq_obj(req, MLX5_IB_ATTR_CREATE_FLOW_MATCHER),
					  struct umatcher, uobj);
	struct ubuf value = ureq_buf(req, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE);
	struct ubuf outer = {value.ptr, min_u64(value.len, sizeof(struct fte_headers))};
	struct flow_attr attr = {.domain = m->domain, .type = m->type, .priority = m->priority};
	struct fte_headers headers;
	struct uflow *flow;
	struct uobj *to, *counter, *action;
	int ret;

	if (!uverbs_may_raw())
		return -EPERM;
	ret = flow_read_destination(req, &attr, &to);
	/* Only arriving frames go to queues. */
	if (ret == 0 && attr.qp && m->domain != FLOW_NIC_RX)
		ret = -EINVAL;
	if (ret == 0)
		ret = flow_read_actions(req, &attr, &action);
	if (ret == 0)
		ret = flow_read_counter(req, &attr, &counter);
	if (ret == 0)
		ret = ubuf_read(&outer, &headers, sizeof(headers));
	if (ret == 0)
		ret = flow_add_headers(&attr, &m->mask, &headers);
	if (ret == 0)
		ret = uflow_create(req->file, &attr, to, &flow);
	if (ret)
		return ret;
	flow->matcher = &m->uobj;
	m->uobj.users++;
	flow->action = action;
	if (action)
		action->users++;
	flow->devx_counter = counter;
	if (counter)
		counter->users++;
	ret = ureq_put_handle(req, MLX5_IB_ATTR_CREATE_FLOW_HANDLE, flow->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&flow->uobj, NULL);
	return ret;
}

/* ---- what requests reach this family ---- */

static const struct attr_spec modify_header_attrs[] = {
	{MLX5_IB_ATTR_CREATE_MODIFY_HEADER_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_CREATE_MODIFY_HEADER_ACTIONS_PRM, IN_MIN(FLOW_MODIFY_BYTES)},
	{MLX5_IB_ATTR_CREATE_MODIFY_HEADER_FT_TYPE, CONST_IN},
};

static const struct attr_spec reformat_attrs[] = {
	{MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_TYPE, CONST_IN},
	{MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_FT_TYPE, CONST_IN},
	{MLX5_IB_ATTR_CREATE_PACKET_REFORMAT_DATA_BUF, IN_MIN(1), OPT},
};

static const struct attr_spec flow_action_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE, IDR(UOBJ_FLOW_ACTION)},
};

/* For arrays of handles, the table only says whether they are there. */
static const struct attr_spec flow_create_mlx5_attrs[] = {
	{MLX5_IB_ATTR_CREATE_FLOW_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, ATTR_PTR_IN, .min = 1, .max = FTE_MATCH_PARAM_BYTES},
	{MLX5_IB_ATTR_CREATE_FLOW_MATCHER, IDR(UOBJ_MATCHER)},
	{MLX5_IB_ATTR_CREATE_FLOW_DEST_QP, IDR(UOBJ_QP), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX, IDR(UOBJ_DEVX), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS, IN_MIN(0), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_TAG, IN(4), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX, IN_MIN(0), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET, IN(4), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_FLAGS, FLAGS_IN, OPT},
};

static const struct attr_spec flow_destroy_mlx5_attrs[] = {
	{MLX5_IB_ATTR_DESTROY_FLOW_HANDLE, IDR(UOBJ_FLOW)},
};

static const struct attr_spec matcher_create_attrs[] = {
	{MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, ATTR_PTR_IN, .min = 1, .max = FTE_MATCH_PARAM_BYTES},
	{MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, ATTR_ENUM, .min = 2, .max = 2,
	 .choices = MLX5_IB_FLOW_TYPE_MC_DEFAULT + 1},
	{MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, IN(1)},
	{MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS, FLAGS_IN, OPT},
	{MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE, CONST_IN, OPT},
};

static const struct attr_spec matcher_destroy_attrs[] = {
	{MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE, IDR(UOBJ_MATCHER)},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER,
	       method_modify_header_create, modify_header_attrs),
	METHOD(UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT,
	       method_reformat_create, reformat_attrs),
	METHOD(UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_DESTROY, method_destroy,
	       flow_action_destroy_attrs),
	METHOD(UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW, method_flow_create_mlx5,
	       flow_create_mlx5_attrs),
	METHOD(UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_DESTROY_FLOW, method_destroy,
	       flow_destroy_mlx5_attrs),
	METHOD(MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE,
	       method_matcher_create, matcher_create_attrs),
	METHOD(MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_DESTROY, method_destroy,
	       matcher_destroy_attrs),
};

const struct uverbs_family umatcher_family = {METHODS(methods)};
