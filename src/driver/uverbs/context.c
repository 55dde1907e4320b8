// SPDX-License-Identifier: BSD-2-Clause
/* The context of a file and its event channels. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "base/log.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"
#include "driver/uverbs/uverbs.h"
#include "exposure/object.h"
#include "wire/wire.h"

/*
 * tot_bfregs 0: doorbell pages are objects of their own.  The bit of comp_mask for time stamps in
 * wall-clock form is clear: the library converts.  Of the options of an enhanced connection (ECE) the
 * device has none, so the answers agree on 0.
 */
static const struct mlx5_ib_alloc_ucontext_resp ucontext = {
	.qp_tab_size = ADAPTER_MAX_QP,
	.bf_reg_size = 512,
	.cache_line_size = 64,
	.max_sq_desc_sz = 1024,
	.max_rq_desc_sz = 512,
	.max_send_wqebb = ADAPTER_MAX_QP_WR,
	.max_recv_wr = ADAPTER_MAX_QP_WR,
	.max_srq_recv_wr = ADAPTER_MAX_SRQ_WR,
	.cqe_version = 1,
	.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
	.eth_min_inline = MLX5_USER_INLINE_MODE_NONE,
	.clock_info_versions = 1 << MLX5_IB_CLOCK_INFO_V1,
	.hca_core_clock_offset = 0, /* offset within its page */
	.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET |
		     MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY |
		     MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_ECE |
		     MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_SQD2RTS |
		     MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_MKEY_UPDATE_TAG,
	.log_uar_size = 12,
	.num_uars_per_page = 1,
};

static int ucontext_write(struct ufile *f, const struct ubuf *out)
{
	struct mlx5_ib_alloc_ucontext_resp resp = ucontext;
	int64_t null_key = adapter_null_key(f->hca->adapter);

	if (null_key < 0)
		return (int)null_key;
	resp.dump_fill_mkey = (uint32_t)null_key;
	resp.num_ports = (uint8_t)f->hca->node->nports;
	uclock_refresh(f);

	resp.response_length = (uint32_t)min_u64(sizeof(resp), out->len);
	return ubuf_write(out, &resp, sizeof(resp));
}

/*
 * The reason of the first refusal stays, because a library that is refused asks again as its older
 * versions did.
 */
static int refuse_old(const struct ufile *f)
{
	if (f->context_error)
		return f->context_error;
	log_warn("uverbs: this libmlx5 is too old (no dynamic UARs or CQE version 1)");
	return -EOPNOTSUPP;
}

/* Reads as mlx5_ib does: of a longer struct it takes what it knows, and does not check the rest. */
static int read_ucontext(const struct ubuf *sent, struct mlx5_ib_alloc_ucontext_req_v2 *uhw)
{
	struct ubuf known = {sent->ptr, min_u64(sent->len, sizeof(*uhw))};

	if (sent->len != sizeof(struct mlx5_ib_alloc_ucontext_req) &&
	    sent->len < offsetof(struct mlx5_ib_alloc_ucontext_req_v2, max_cqe_version))
		return -EINVAL;
	return ubuf_read(&known, uhw, sizeof(*uhw));
}

/* Lists the context for people. */
static void context_list(struct ufile *f)
{
	static _Atomic(uint32_t) contexts;

	f->context_number = atomic_fetch_add(&contexts, 1) + 1;
	f->context_row =
		expose_object(wire_expose(f->hca->wire), &(struct object_about){
								 .kind = OBJECT_CONTEXT,
								 .number = f->context_number,
								 .port = f->hca->port_row,
								 .context = f->context_number,
							 });
}

static int ucontext_open(struct ureq *req)
{
	struct mlx5_ib_alloc_ucontext_req_v2 uhw;
	int ret;

	if (req->file->context)
		return -EINVAL;
	ret = read_ucontext(&req->uhw_in, &uhw);
	if (ret < 0)
		return ret;
	if (uhw.flags & ~(uint32_t)MLX5_IB_ALLOC_UCTX_DEVX)
		return -EOPNOTSUPP;
	if (uhw.comp_mask || uhw.reserved0 || uhw.reserved1 || uhw.reserved2)
		return -EOPNOTSUPP;
	/* Both are older than rdma-core 24.  Nobody tests or misses what such libraries would
	 * need. */
	if (!(uhw.lib_caps & MLX5_LIB_CAP_DYN_UAR) || uhw.max_cqe_version < 1)
		return refuse_old(req->file);
	/* libmlx5 asks for a region at once, and crashes later if it gets none. */
	ret = uuar_reserve(req->file);
	if (ret == 0)
		ret = ucontext_write(req->file, &req->uhw_out);
	req->file->context_error = ret;
	if (ret == 0) {
		req->file->context = true;
		req->file->devx = uhw.flags & MLX5_IB_ALLOC_UCTX_DEVX;
		context_list(req->file);
	}
	return ret;
}

static int method_get_context(struct ureq *req)
{
	int ret =
		ureq_put_u32(req, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, uverbs_comp_vectors());

	if (ret == 0)
		ret = ureq_put_u64(req, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT,
				   IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
	return ret < 0 ? ret : ucontext_open(req);
}

static int method_query_context(struct ureq *req)
{
	struct ubuf out = ureq_buf(req, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX);
	int ret = ureq_put_u32(req, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS,
			       uverbs_comp_vectors());

	if (ret == 0)
		ret = ureq_put_u64(req, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT,
				   IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
	if (ret == 0)
		ret = ucontext_write(req->file, &out);
	return ret < 0 ? ret : ureq_put_done(req, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX);
}

/* Makes the first channel, which is the default for objects that name none. */
static int async_channel_alloc(struct ufile *f)
{
	struct uchannel *c;
	int fd = uchannel_create(f, UCHANNEL_ASYNC, &c);

	if (fd >= 0 && f->async)
		cdev_put(uchannel_cdev(c));
	else if (fd >= 0)
		f->async = c;
	return fd;
}

static int cmd_get_context(struct ureq *req)
{
	struct ib_uverbs_get_context_resp resp = {0};
	int fd, ret = ucontext_open(req);

	if (ret < 0)
		return ret;
	fd = async_channel_alloc(req->file);
	if (fd < 0) {
		req->file->context = false;
		return fd;
	}
	resp.async_fd = (uint32_t)fd;
	resp.num_comp_vectors = uverbs_comp_vectors();
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0) {
		req->file->context = false;
		uchannel_drop_fd(fd);
	}
	return ret;
}

static int method_async_alloc(struct ureq *req)
{
	int fd = async_channel_alloc(req->file);
	int ret;

	if (fd < 0)
		return fd;
	ret = ureq_put_handle(req, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd);
	if (ret < 0)
		uchannel_drop_fd(fd);
	return ret;
}

static int cmd_create_comp_channel(struct ureq *req)
{
	struct ib_uverbs_create_comp_channel_resp resp = {0};
	int ret, fd = uchannel_create(req->file, UCHANNEL_COMP, NULL);

	if (fd < 0)
		return fd;
	resp.fd = (uint32_t)fd;
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		uchannel_drop_fd(fd);
	return ret;
}

static const struct {
	uint16_t object;
	enum uobj_type type;
} listed[] = {
	{UVERBS_OBJECT_PD, UOBJ_PD},
	{UVERBS_OBJECT_CQ, UOBJ_CQ},
	{UVERBS_OBJECT_QP, UOBJ_QP},
	{UVERBS_OBJECT_SRQ, UOBJ_SRQ},
	{UVERBS_OBJECT_AH, UOBJ_AH},
	{UVERBS_OBJECT_MR, UOBJ_MR},
	{UVERBS_OBJECT_WQ, UOBJ_WQ},
	{UVERBS_OBJECT_FLOW, UOBJ_FLOW},
	{UVERBS_OBJECT_COUNTERS, UOBJ_COUNTERS},
	{UVERBS_OBJECT_RWQ_IND_TBL, UOBJ_IND_TABLE},
	{MLX5_IB_OBJECT_UAR, UOBJ_UAR},
	{MLX5_IB_OBJECT_FLOW_MATCHER, UOBJ_MATCHER},
};

/* Device memory has its own handles, see dm_pool.h. */
static bool handle_exists(struct ufile *f, enum uobj_type type, uint32_t handle)
{
	struct dm_info dm;
	int err;

	if (handle >= DM_HANDLE_FIRST)
		return dm_find(&f->dm, handle, &dm) == 0;
	return uobj_find(f, type, handle, &err) != NULL;
}

/* Lists the handles of one kind; as many as fit are written. */
static int method_info_handles(struct ureq *req)
{
	uint64_t object = ureq_u64(req, UVERBS_ATTR_INFO_OBJECT_ID);
	struct ubuf list = ureq_buf(req, UVERBS_ATTR_INFO_HANDLES_LIST);
	uint32_t room = (uint32_t)(list.len / sizeof(uint32_t)), n = 0;
	enum uobj_type type = UOBJ_NONE;
	int ret;
	bool dm = object == UVERBS_OBJECT_DM;
	uint32_t end = dm ? DM_HANDLE_FIRST + DM_PAGES : req->file->objects.limit;

	for (size_t i = 0; i < array_size(listed); i++)
		if (listed[i].object == object)
			type = listed[i].type;
	if (list.len % sizeof(uint32_t))
		return -EINVAL;
	if (type == UOBJ_NONE && !dm)
		return -ENOENT;
	for (uint32_t handle = dm ? DM_HANDLE_FIRST : 0; handle < end && n < room; handle++) {
		struct ubuf at = {uaddr_at(list.ptr, n * sizeof(handle)), sizeof(handle)};

		if (!handle_exists(req->file, type, handle))
			continue;
		ret = ubuf_write(&at, &handle, sizeof(handle));
		if (ret < 0)
			return ret;
		n++;
	}
	ret = ureq_put_done(req, UVERBS_ATTR_INFO_HANDLES_LIST);
	return ret < 0 ? ret : ureq_put_u32(req, UVERBS_ATTR_INFO_TOTAL_HANDLES, n);
}

/* ---- what requests reach this family ---- */

static const struct attr_spec get_context_attrs[] = {
	{UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, OUT(4), OPT},
	{UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, OUT(8), OPT},
};

static const struct attr_spec info_handles_attrs[] = {
	{UVERBS_ATTR_INFO_OBJECT_ID, CONST_IN},
	{UVERBS_ATTR_INFO_TOTAL_HANDLES, OUT(4), OPT},
	{UVERBS_ATTR_INFO_HANDLES_LIST, OUT_MIN(4)},
};

static const struct attr_spec query_context_attrs[] = {
	{UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, OUT(4), OPT},
	{UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, OUT(8), OPT},
	{MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, ATTR_PTR_OUT, OPT,
	 .min = offsetof(struct mlx5_ib_alloc_ucontext_resp, dump_fill_mkey) + 4,
	 .max = UINT16_MAX},
};

static const struct attr_spec async_alloc_attrs[] = {
	{UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, ATTR_FD_NEW},
};

static const struct method_spec methods[] = {
	{
		.object = UVERBS_OBJECT_DEVICE,
		.method = UVERBS_METHOD_GET_CONTEXT,
		.name = "UVERBS_METHOD_GET_CONTEXT",
		.attrs = get_context_attrs,
		.nattrs = array_size(get_context_attrs),
		.run = method_get_context,
		.uhw = true,
		.before_context = true,
	},
	METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, method_info_handles,
	       info_handles_attrs),
	METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, method_query_context,
	       query_context_attrs),
	METHOD(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, method_async_alloc,
	       async_alloc_attrs),
};

static const struct command_spec commands[] = {
	{
		.number = IB_USER_VERBS_CMD_GET_CONTEXT,
		.name = "GET_CONTEXT",
		.run = cmd_get_context,
		.in = sizeof(struct ib_uverbs_get_context),
		.out = sizeof(struct ib_uverbs_get_context_resp),
		.has_response = true,
		.uhw = true,
		.before_context = true,
	},
	CMD_RESP(CREATE_COMP_CHANNEL, cmd_create_comp_channel, ib_uverbs_create_comp_channel,
		 ib_uverbs_create_comp_channel_resp),
};

const struct uverbs_family ucontext_family = {METHODS(methods), COMMANDS(commands)};
