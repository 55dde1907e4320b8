// SPDX-License-Identifier: BSD-2-Clause
/* Completion queues, by ioctl and by command. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "usermem/usermem.h"

/* enum ibv_cq_attr_mask; in no UAPI header. */
#define CQ_MODERATE 1u

struct cq_request {
	uint64_t user_handle;
	uint32_t cqe;
	uint32_t comp_vector;
	uint32_t flags; /* enum ib_uverbs_ex_create_cq_flags */
	struct uchannel *comp;
	struct uchannel *async;
};

/* Returns the ring's size for cqe completions; 0 if there is none. */
static uint32_t cq_ring_entries(uint32_t cqe)
{
	if (!cqe || cqe > ADAPTER_MAX_CQE)
		return 0;
	return 1u << (32 - __builtin_clz(cqe));
}

/* Returns the format that the program chose; the device takes one at a time. */
static int cq_mini_format(const struct mlx5_ib_create_cq *uhw)
{
	switch (uhw->cqe_comp_res_format) {
	case MLX5_IB_CQE_RES_FORMAT_HASH:
		return CQE_MINI_HASH;
	case MLX5_IB_CQE_RES_FORMAT_CSUM:
		return CQE_MINI_CSUM;
	case MLX5_IB_CQE_RES_FORMAT_CSUM_STRIDX:
		return CQE_MINI_CSUM_STRIDX;
	default:
		return -EINVAL;
	}
}

static int cq_check_uhw(const struct mlx5_ib_create_cq *uhw)
{
	if (uhw->cqe_size != 64 && uhw->cqe_size != 128)
		return -EINVAL;
	if (uhw->flags &
	    ~(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD | MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX |
	      MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS))
		return -EINVAL;
	if (uhw->flags & MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS) {
		log_info("uverbs: wall-clock stamps are not supported");
		return -EOPNOTSUPP;
	}
	if (uhw->cqe_comp_en && cq_mini_format(uhw) < 0)
		return -EINVAL;
	if (uhw->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD && uhw->cqe_size != 128)
		return -EOPNOTSUPP;
	return uhw->db_addr % sizeof(uint32_t) ? -EINVAL : 0;
}

/* Upcall: the CQ was armed and a completion came. */
static void cq_event(void *user)
{
	struct ucq *cq = container_of((struct uobj *)user, struct ucq, uobj);

	uchannel_post_comp(cq->comp, cq->uobj.user_handle, &cq->comp_events);
}

/* Users were counted, so no QP names the CQ any more. */
static void ucq_destroy_device(struct ucq *cq)
{
	if (cq_destroy(cq->cq) < 0)
		log_error("uverbs: a CQ without users is in use");
}

static void ucq_unbind(struct ucq *cq)
{
	uobj_unbind_async(&cq->uobj);
	if (cq->comp)
		cdev_put(uchannel_cdev(cq->comp));
}

static void ucq_free(struct uobj *obj)
{
	struct ucq *cq = container_of(obj, struct ucq, uobj);

	doorbell_user_release(&cq->bell);
	ucq_destroy_device(cq);
}

static void ucq_collect(struct uobj *obj, struct uevents *events)
{
	struct ucq *cq = container_of(obj, struct ucq, uobj);
	uint32_t taken;

	if (!cq->comp)
		return;
	taken = uchannel_purge(cq->comp, obj->user_handle);
	events->comp = cq->comp_events - min_u32(taken, cq->comp_events);
	cdev_put(uchannel_cdev(cq->comp));
}

static uint32_t ucq_number(struct uobj *obj)
{
	return cq_number(container_of(obj, struct ucq, uobj)->cq);
}

static const struct uobj_class ucq_class = {
	.type = UOBJ_CQ,
	.free = ucq_free,
	.collect = ucq_collect,
	.number = ucq_number,
};

void ucq_ring(struct ucq *cq)
{
	/* The caller that arms has just read an event, so the pipe has room for one that waited. */
	if (unlikely(uchannel_overflowed()) && cq->comp)
		uchannel_flush(cq->comp);
	cq_doorbell(cq->cq);
}

static void ucq_rung(struct doorbell_user *u)
{
	ucq_ring(container_of(u, struct ucq, bell));
}

/*
 * A program may arm a CQ without hooks by a store at any time.  With hooks only CQs that the
 * program takes over are armed so, and nobody need look at the others.
 */
static void ucq_bell(struct ucq *cq, struct ufile *f, uint32_t uar_page)
{
	doorbell_user_init(&cq->bell, DOORBELL_CQ, uuar_regs(f, uar_page), ucq_rung);
	doorbell_live(&cq->bell, !atomic_load(&f->hooked));
}

/* Reads what the library asks for, and checks it before anything is made. */
static int cq_read_uhw(struct ureq *req, const struct cq_request *r, struct mlx5_ib_create_cq *uhw)
{
	uint32_t entries = cq_ring_entries(r->cqe);
	int ret = ubuf_read(&req->uhw_in, uhw, sizeof(*uhw));

	if (ret < 0)
		return ret;
	if (!entries || r->comp_vector >= uverbs_comp_vectors())
		return -EINVAL;
	if (r->flags &
	    ~(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)) {
		log_info("uverbs: CQ creation flags 0x%x are not supported", r->flags);
		return -EOPNOTSUPP;
	}
	ret = cq_check_uhw(uhw);
	if (ret == 0)
		ret = umem_populate(uhw->buf_addr, (uint64_t)entries * uhw->cqe_size, true);
	if (ret == 0)
		ret = umem_populate(uhw->db_addr, 2 * sizeof(uint32_t), true);
	if (ret < 0)
		return ret;
	/* The first record that arms is all zero, like fresh memory: without this mark the device
	 * could not tell it from "never armed". */
	return usermem_store_be32((uint32_t *)(uintptr_t)uhw->db_addr + DBREC_CQ_ARM,
				  DBREC_CQ_ARM_NEVER)
		       ? 0
		       : -EFAULT;
}

static struct ucq *ucq_new(struct ureq *req, const struct cq_request *r,
			   const struct mlx5_ib_create_cq *uhw)
{
	struct ucq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return NULL;
	cq->uobj.user_handle = r->user_handle;
	cq->entries = cq_ring_entries(r->cqe);
	cq->cqe_bytes = uhw->cqe_size;
	uobj_bind_async(&cq->uobj, req->file, r->async);
	cq->comp = r->comp;
	if (cq->comp)
		cdev_hold(uchannel_cdev(cq->comp));
	return cq;
}

static int ucq_create_device(struct ureq *req, const struct cq_request *r,
			     const struct mlx5_ib_create_cq *uhw, struct ucq *cq)
{
	const struct cq_attr attr = {
		.buf = (void *)(uintptr_t)uhw->buf_addr,
		.entries = cq->entries,
		.cqe_bytes = uhw->cqe_size,
		.dbrec = (void *)(uintptr_t)uhw->db_addr,
		.timestamps = r->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION,
		.overrun_ignore = r->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN,
		.padded = uhw->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD,
		.compression = uhw->cqe_comp_en ? CQ_COMPRESSED_BASIC : CQ_PLAIN,
		.mini_format = uhw->cqe_comp_en ? (uint8_t)cq_mini_format(uhw) : 0,
		.context = req->file->context_number,
		.event = r->comp ? cq_event : NULL,
		.async = uobj_async,
		.user = &cq->uobj,
	};

	return cq_create(req->file->hca->adapter, &attr, &cq->cq);
}

static int ucq_create(struct ureq *req, const struct cq_request *r, struct ucq **out)
{
	struct mlx5_ib_create_cq uhw;
	struct mlx5_ib_create_cq_resp uhw_resp = {0};
	struct ucq *cq;
	int ret = cq_read_uhw(req, r, &uhw);

	if (ret < 0)
		return ret;
	cq = ucq_new(req, r, &uhw);
	if (!cq)
		return -ENOMEM;
	ret = ucq_create_device(req, r, &uhw, cq);
	if (ret < 0)
		goto free_cq;
	if (uhw.flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX)
		ucq_bell(cq, req->file, uhw.uar_page_index);
	ret = uobj_publish(req->file, &cq->uobj, &ucq_class);
	if (ret < 0)
		goto destroy_cq;
	uhw_resp.cqn = cq_number(cq->cq);
	ret = ubuf_write(&req->uhw_out, &uhw_resp, sizeof(uhw_resp));
	if (ret < 0) {
		(void)uobj_destroy(&cq->uobj, NULL);
		return ret;
	}
	*out = cq;
	return 0;

destroy_cq:
	doorbell_user_release(&cq->bell);
	ucq_destroy_device(cq);
free_cq:
	ucq_unbind(cq);
	free(cq);
	return ret;
}

static int method_cq_create(struct ureq *req)
{
	struct cq_request r = {
		.user_handle = ureq_u64(req, UVERBS_ATTR_CREATE_CQ_USER_HANDLE),
		.cqe = ureq_u32(req, UVERBS_ATTR_CREATE_CQ_CQE),
		.comp_vector = ureq_u32(req, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR),
		.comp = ureq_channel(req, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL),
		.async = ureq_channel(req, UVERBS_ATTR_CREATE_CQ_EVENT_FD),
	};
	struct ucq *cq;
	int ret = ureq_flags(req, UVERBS_ATTR_CREATE_CQ_FLAGS,
			     IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION |
				     IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN,
			     &r.flags);

	if (ret == 0)
		ret = ucq_create(req, &r, &cq);
	if (ret)
		return ret;
	ret = ureq_put_u32(req, UVERBS_ATTR_CREATE_CQ_RESP_CQE, cq->entries - 1);
	if (ret == 0)
		ret = ureq_put_handle(req, UVERBS_ATTR_CREATE_CQ_HANDLE, cq->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&cq->uobj, NULL);
	return ret;
}

/* comp_channel of a command: a descriptor, or negative for none. */
static int ucq_create_by_command(struct ureq *req, struct cq_request *r, int32_t comp_channel,
				 struct ucq **out)
{
	int ret;

	if (comp_channel >= 0) {
		ret = uchannel_find(req->file, UCHANNEL_COMP, comp_channel, &r->comp);
		if (ret < 0)
			return ret;
	}
	ret = ucq_create(req, r, out);
	if (r->comp)
		cdev_put(uchannel_cdev(r->comp));
	return ret;
}

static int cmd_create_cq(struct ureq *req)
{
	struct ib_uverbs_create_cq cmd;
	struct ib_uverbs_create_cq_resp resp = {0};
	struct cq_request r = {0};
	struct ucq *cq;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	r.user_handle = cmd.user_handle;
	r.cqe = cmd.cqe;
	r.comp_vector = cmd.comp_vector;
	ret = ucq_create_by_command(req, &r, cmd.comp_channel, &cq);
	if (ret < 0)
		return ret;
	resp.cq_handle = cq->uobj.handle;
	resp.cqe = cq->entries - 1;
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&cq->uobj, NULL);
	return ret;
}

static int cmd_create_cq_ex(struct ureq *req)
{
	struct ib_uverbs_ex_create_cq cmd;
	struct ib_uverbs_ex_create_cq_resp resp = {0};
	struct cq_request r = {0};
	struct ucq *cq;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.comp_mask || cmd.reserved)
		return -EINVAL;
	r.user_handle = cmd.user_handle;
	r.cqe = cmd.cqe;
	r.comp_vector = cmd.comp_vector;
	r.flags = cmd.flags;
	ret = ucq_create_by_command(req, &r, cmd.comp_channel, &cq);
	if (ret < 0)
		return ret;
	resp.base.cq_handle = cq->uobj.handle;
	resp.base.cqe = cq->entries - 1;
	resp.response_length = (uint32_t)min_u64(sizeof(resp), req->core_out.len);
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&cq->uobj, NULL);
	return ret;
}

static int cmd_resize_cq(struct ureq *req)
{
	struct ib_uverbs_resize_cq cmd;
	struct ib_uverbs_resize_cq_resp resp = {0};
	struct mlx5_ib_resize_cq uhw;
	uint32_t entries;
	struct uobj *obj;
	struct ucq *cq;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = ubuf_read(&req->uhw_in, &uhw, sizeof(uhw));
	if (ret)
		return ret;
	obj = uobj_find(req->file, UOBJ_CQ, cmd.cq_handle, &ret);
	if (!obj)
		return ret;
	cq = container_of(obj, struct ucq, uobj);
	entries = cq_ring_entries(cmd.cqe);
	if (!entries)
		return -EINVAL;
	/* If the size does not change, the kernel and libmlx5 leave the old ring in place. */
	if (entries != cq->entries) {
		if (uhw.cqe_size != 64 && uhw.cqe_size != 128)
			return -EINVAL;
		if (uhw.reserved0 || uhw.reserved1)
			return -EINVAL;
		ret = umem_populate(uhw.buf_addr, (uint64_t)entries * uhw.cqe_size, true);
		if (ret == 0)
			ret = cq_resize(cq->cq, (void *)(uintptr_t)uhw.buf_addr, entries,
					uhw.cqe_size);
		if (ret < 0)
			return ret;
		cq->entries = entries;
		cq->cqe_bytes = uhw.cqe_size;
	}
	resp.cqe = cq->entries - 1;
	return ubuf_write(&req->core_out, &resp, sizeof(resp));
}

static int cmd_modify_cq(struct ureq *req)
{
	struct ib_uverbs_ex_modify_cq cmd;
	struct uobj *obj;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (!cmd.attr_mask || cmd.reserved)
		return -EINVAL;
	if (cmd.attr_mask != CQ_MODERATE)
		return -EOPNOTSUPP;
	obj = uobj_find(req->file, UOBJ_CQ, cmd.cq_handle, &ret);
	if (!obj)
		return ret;
	if (cmd.attr.cq_period > ADAPTER_MAX_CQ_PERIOD)
		return -EINVAL;
	cq_moderate(container_of(obj, struct ucq, uobj)->cq, cmd.attr.cq_count, cmd.attr.cq_period);
	return 0;
}

static struct ib_uverbs_destroy_cq_resp cq_destroy_answer(const struct uevents *events)
{
	return (struct ib_uverbs_destroy_cq_resp){
		.comp_events_reported = events->comp,
		.async_events_reported = events->async,
	};
}

static int method_cq_destroy(struct ureq *req)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct uevents events = {0};
	int ret = uobj_destroy(ureq_obj(req, UVERBS_ATTR_DESTROY_CQ_HANDLE), &events);

	if (ret < 0)
		return ret;
	resp = cq_destroy_answer(&events);
	return ureq_put(req, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof(resp));
}

static int cmd_destroy_cq(struct ureq *req)
{
	struct ib_uverbs_destroy_cq cmd;
	struct ib_uverbs_destroy_cq_resp resp;
	struct uevents events = {0};
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = ureq_destroy(req, UOBJ_CQ, cmd.cq_handle, &events);
	if (ret < 0)
		return ret;
	resp = cq_destroy_answer(&events);
	return ubuf_write(&req->core_out, &resp, sizeof(resp));
}

/* ---- what requests reach this family ---- */

static const struct attr_spec cq_create_attrs[] = {
	{UVERBS_ATTR_CREATE_CQ_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_CREATE_CQ_CQE, IN(4)},
	{UVERBS_ATTR_CREATE_CQ_USER_HANDLE, IN(8)},
	{UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, CHANNEL(UCHANNEL_COMP), OPT},
	{UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, IN(4)},
	{UVERBS_ATTR_CREATE_CQ_FLAGS, FLAGS_IN, OPT},
	{UVERBS_ATTR_CREATE_CQ_RESP_CQE, OUT(4)},
	{UVERBS_ATTR_CREATE_CQ_EVENT_FD, CHANNEL(UCHANNEL_ASYNC), OPT},
};

static const struct attr_spec cq_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_CQ_HANDLE, IDR(UOBJ_CQ)},
	{UVERBS_ATTR_DESTROY_CQ_RESP, OUT(sizeof(struct ib_uverbs_destroy_cq_resp))},
};

static const struct method_spec methods[] = {
	UHW_METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, method_cq_create, cq_create_attrs),
	METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, method_cq_destroy, cq_destroy_attrs),
};

static const struct command_spec commands[] = {
	CMD_RESP_UHW(CREATE_CQ, cmd_create_cq, ib_uverbs_create_cq, ib_uverbs_create_cq_resp),
	{
		.number = IB_USER_VERBS_CMD_RESIZE_CQ,
		.name = "RESIZE_CQ",
		.run = cmd_resize_cq,
		.in = sizeof(struct ib_uverbs_resize_cq),
		/* The reserved word came in a later version. */
		.out = END_OF(struct ib_uverbs_resize_cq_resp, cqe),
		.has_response = true,
		.uhw = true,
	},
	CMD_RESP(DESTROY_CQ, cmd_destroy_cq, ib_uverbs_destroy_cq, ib_uverbs_destroy_cq_resp),
	EX(CREATE_CQ, cmd_create_cq_ex, END_OF(struct ib_uverbs_ex_create_cq, reserved),
	   END_OF(struct ib_uverbs_ex_create_cq_resp, response_length)),
	EX(MODIFY_CQ, cmd_modify_cq, sizeof(struct ib_uverbs_ex_modify_cq), 0),
};

const struct uverbs_family ucq_family = {METHODS(methods), COMMANDS(commands)};
