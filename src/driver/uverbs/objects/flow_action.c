// SPDX-License-Identifier: BSD-2-Clause
/*
 * Actions of rules (mlx5dv_create_flow_action_modify_header(3), ..._packet_reformat(3)).  The
 * program names fields of headers as commands do, and ways into tunnels and out of them; the device
 * changes words and headers, as entries of steering do.
 */
#include "driver/uverbs/objects/flow_action.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>

#include "adapter/adapter.h"
#include "base/log.h"
#include "driver/uverbs/core/port.h"
#include "driver/uverbs/objects/families.h"
#include "driver/uverbs/objects/rss.h"
#include "prm/ste.h"

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

const struct flow_modify *uflow_action_modify(struct uobj *obj)
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

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER,
	       method_modify_header_create, modify_header_attrs),
	METHOD(UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT,
	       method_reformat_create, reformat_attrs),
	METHOD(UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_DESTROY, method_destroy,
	       flow_action_destroy_attrs),
};

const struct uverbs_family uflow_action_family = {METHODS(methods)};
