// SPDX-License-Identifier: BSD-2-Clause
/*
 * The numbered commands of the uverbs ABI: the table, and the two ways they come in.  Sizes in the
 * table are the least that an ABI 6 program sends and expects; what the program knows beyond is
 * dealt with by ubuf_read and ubuf_write.  Which errno answers which mistake, and which of two is
 * found first, are as in the kernel: libraries probe with them.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include "base/log.h"
#include "driver/uverbs/objects.h"
#include "driver/uverbs/uverbs.h"
#include "usermem/usermem.h"

struct command {
	const char *name;
	int (*run)(struct ureq *req);
	uint16_t in; /* legacy: core struct without header; extended: what must be there */
	uint16_t out;
	bool has_response; /* the struct begins with the address of the response */
	bool uhw;	   /* legacy: what follows the core struct is the provider's */
	bool before_context;
	bool inherited; /* only looks: also for a forked child, see struct method_spec */
};

#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

#define CMD(num, fn, type) \
	[IB_USER_VERBS_CMD_##num] = {.name = #num, .run = (fn), .in = sizeof(struct type)}
#define CMD_RESP(num, fn, type, resp)       \
	[IB_USER_VERBS_CMD_##num] = {       \
		.name = #num,               \
		.run = (fn),                \
		.in = sizeof(struct type),  \
		.out = sizeof(struct resp), \
		.has_response = true,       \
	}
#define CMD_LOOK(num, fn, type, resp)       \
	[IB_USER_VERBS_CMD_##num] = {       \
		.name = #num,               \
		.run = (fn),                \
		.in = sizeof(struct type),  \
		.out = sizeof(struct resp), \
		.has_response = true,       \
		.inherited = true,          \
	}
#define CMD_UHW(num, fn, type) \
	[IB_USER_VERBS_CMD_##  \
		num] = {.name = #num, .run = (fn), .in = sizeof(struct type), .uhw = true}
#define CMD_RESP_UHW(num, fn, type, resp)   \
	[IB_USER_VERBS_CMD_##num] = {       \
		.name = #num,               \
		.run = (fn),                \
		.in = sizeof(struct type),  \
		.out = sizeof(struct resp), \
		.has_response = true,       \
		.uhw = true,                \
	}
/* Known, but this device has not got the feature. */
#define NO_CMD(num) [IB_USER_VERBS_CMD_##num] = {.name = #num}

static const struct command commands[] = {
	[IB_USER_VERBS_CMD_GET_CONTEXT] =
		{
			.name = "GET_CONTEXT",
			.run = cmd_get_context,
			.in = sizeof(struct ib_uverbs_get_context),
			.out = sizeof(struct ib_uverbs_get_context_resp),
			.has_response = true,
			.uhw = true,
			.before_context = true,
		},
	CMD_LOOK(QUERY_DEVICE, cmd_query_device, ib_uverbs_query_device,
		 ib_uverbs_query_device_resp),
	CMD_LOOK(QUERY_PORT, cmd_query_port, ib_uverbs_query_port, ib_uverbs_query_port_resp),
	CMD_RESP_UHW(ALLOC_PD, cmd_alloc_pd, ib_uverbs_alloc_pd, ib_uverbs_alloc_pd_resp),
	CMD(DEALLOC_PD, cmd_dealloc_pd, ib_uverbs_dealloc_pd),
	CMD_RESP_UHW(CREATE_AH, cmd_create_ah, ib_uverbs_create_ah, ib_uverbs_create_ah_resp),
	NO_CMD(MODIFY_AH),
	NO_CMD(QUERY_AH),
	CMD(DESTROY_AH, cmd_destroy_ah, ib_uverbs_destroy_ah),
	CMD_RESP_UHW(REG_MR, cmd_reg_mr, ib_uverbs_reg_mr, ib_uverbs_reg_mr_resp),
	NO_CMD(REG_SMR),
	CMD_RESP_UHW(REREG_MR, cmd_rereg_mr, ib_uverbs_rereg_mr, ib_uverbs_rereg_mr_resp),
	NO_CMD(QUERY_MR),
	CMD(DEREG_MR, cmd_dereg_mr, ib_uverbs_dereg_mr),
	CMD_RESP_UHW(ALLOC_MW, cmd_alloc_mw, ib_uverbs_alloc_mw, ib_uverbs_alloc_mw_resp),
	NO_CMD(BIND_MW),
	CMD(DEALLOC_MW, cmd_dealloc_mw, ib_uverbs_dealloc_mw),
	CMD_RESP(CREATE_COMP_CHANNEL, cmd_create_comp_channel, ib_uverbs_create_comp_channel,
		 ib_uverbs_create_comp_channel_resp),
	CMD_RESP_UHW(CREATE_CQ, cmd_create_cq, ib_uverbs_create_cq, ib_uverbs_create_cq_resp),
	[IB_USER_VERBS_CMD_RESIZE_CQ] =
		{
			.name = "RESIZE_CQ",
			.run = cmd_resize_cq,
			.in = sizeof(struct ib_uverbs_resize_cq),
			/* The reserved word came later. */
			.out = END_OF(struct ib_uverbs_resize_cq_resp, cqe),
			.has_response = true,
			.uhw = true,
		},
	CMD_RESP(DESTROY_CQ, cmd_destroy_cq, ib_uverbs_destroy_cq, ib_uverbs_destroy_cq_resp),
	NO_CMD(POLL_CQ),
	NO_CMD(PEEK_CQ),
	NO_CMD(REQ_NOTIFY_CQ),
	CMD_RESP_UHW(CREATE_QP, cmd_create_qp, ib_uverbs_create_qp, ib_uverbs_create_qp_resp),
	CMD_RESP(QUERY_QP, cmd_query_qp, ib_uverbs_query_qp, ib_uverbs_query_qp_resp),
	CMD(MODIFY_QP, cmd_modify_qp, ib_uverbs_modify_qp),
	CMD_RESP(DESTROY_QP, cmd_destroy_qp, ib_uverbs_destroy_qp, ib_uverbs_destroy_qp_resp),
	NO_CMD(POST_SEND),
	NO_CMD(POST_RECV),
	CMD(ATTACH_MCAST, cmd_attach_mcast, ib_uverbs_attach_mcast),
	CMD(DETACH_MCAST, cmd_detach_mcast, ib_uverbs_detach_mcast),
	CMD_RESP_UHW(CREATE_SRQ, cmd_create_srq, ib_uverbs_create_srq, ib_uverbs_create_srq_resp),
	CMD_UHW(MODIFY_SRQ, cmd_modify_srq, ib_uverbs_modify_srq),
	CMD_RESP(QUERY_SRQ, cmd_query_srq, ib_uverbs_query_srq, ib_uverbs_query_srq_resp),
	CMD_RESP(DESTROY_SRQ, cmd_destroy_srq, ib_uverbs_destroy_srq, ib_uverbs_destroy_srq_resp),
	NO_CMD(POST_SRQ_RECV),
	CMD_RESP_UHW(OPEN_XRCD, cmd_open_xrcd, ib_uverbs_open_xrcd, ib_uverbs_open_xrcd_resp),
	CMD(CLOSE_XRCD, cmd_close_xrcd, ib_uverbs_close_xrcd),
	CMD_RESP_UHW(CREATE_XSRQ, cmd_create_xsrq, ib_uverbs_create_xsrq,
		     ib_uverbs_create_srq_resp),
	CMD_RESP_UHW(OPEN_QP, cmd_open_qp, ib_uverbs_open_qp, ib_uverbs_create_qp_resp),
};

#define EX(num, fn, need_in, need_out) \
	[IB_USER_VERBS_EX_CMD_##       \
		num] = {.name = "EX_" #num, .run = (fn), .in = (need_in), .out = (need_out)}
#define NO_EX(num) [IB_USER_VERBS_EX_CMD_##num] = {.name = "EX_" #num}

static const struct command ex_commands[] = {
	[IB_USER_VERBS_EX_CMD_QUERY_DEVICE] =
		{
			.name = "EX_QUERY_DEVICE",
			.run = cmd_query_device_ex,
			.in = sizeof(struct ib_uverbs_ex_query_device),
			.out = END_OF(struct ib_uverbs_ex_query_device_resp, response_length),
			.inherited = true,
		},
	EX(CREATE_CQ, cmd_create_cq_ex, END_OF(struct ib_uverbs_ex_create_cq, reserved),
	   END_OF(struct ib_uverbs_ex_create_cq_resp, response_length)),
	EX(CREATE_QP, cmd_create_qp_ex, END_OF(struct ib_uverbs_ex_create_qp, create_flags),
	   END_OF(struct ib_uverbs_ex_create_qp_resp, response_length)),
	EX(MODIFY_QP, cmd_modify_qp_ex, offsetof(struct ib_uverbs_ex_modify_qp, rate_limit), 0),
	EX(CREATE_FLOW, cmd_create_flow_ex, sizeof(struct ib_uverbs_create_flow),
	   sizeof(struct ib_uverbs_create_flow_resp)),
	EX(DESTROY_FLOW, cmd_destroy_flow_ex, sizeof(struct ib_uverbs_destroy_flow), 0),
	EX(CREATE_WQ, cmd_create_wq_ex, END_OF(struct ib_uverbs_ex_create_wq, max_sge),
	   END_OF(struct ib_uverbs_ex_create_wq_resp, wqn)),
	EX(MODIFY_WQ, cmd_modify_wq_ex, END_OF(struct ib_uverbs_ex_modify_wq, curr_wq_state), 0),
	EX(DESTROY_WQ, cmd_destroy_wq_ex, sizeof(struct ib_uverbs_ex_destroy_wq),
	   END_OF(struct ib_uverbs_ex_destroy_wq_resp, events_reported)),
	EX(CREATE_RWQ_IND_TBL, cmd_create_rwq_ind_tbl_ex,
	   sizeof(struct ib_uverbs_ex_create_rwq_ind_table),
	   END_OF(struct ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_num)),
	EX(DESTROY_RWQ_IND_TBL, cmd_destroy_rwq_ind_tbl_ex,
	   sizeof(struct ib_uverbs_ex_destroy_rwq_ind_table), 0),
	EX(MODIFY_CQ, cmd_modify_cq, sizeof(struct ib_uverbs_ex_modify_cq), 0),
};

static int find_command(uint32_t number, const struct command **out)
{
	uint32_t index = number & IB_USER_VERBS_CMD_COMMAND_MASK;
	bool extended = number & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	const struct command *list = extended ? ex_commands : commands;
	size_t n = extended ? array_size(ex_commands) : array_size(commands);

	if (number & ~(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK))
		return -EINVAL;
	if (index >= n)
		return -EOPNOTSUPP;
	*out = &list[index];
	return 0;
}

static int run_command(struct ureq *req, const struct command *c)
{
	int ret;

	if (!c->run) {
		log_info("uverbs: the command %s is not there",
			 c->name ? c->name : "of that number");
		return -EOPNOTSUPP;
	}
	if (!c->before_context && !req->file->context)
		return -EINVAL;
	if (req->inherited && !c->inherited)
		return -EIO;
	ret = c->run(req);
	if (ret < 0)
		log_debug("uverbs: %s: %s", c->name, strerror(-ret));
	return ret;
}

static int run_numbered(struct ureq *req, uint32_t number)
{
	const struct command *c;
	int ret = find_command(number, &c);

	if (ret < 0)
		return ret;
	/* libibverbs asks with empty buffers whether INVOKE_WRITE exists; ENOSPC means yes. */
	if (req->core_in.len < c->in || req->core_out.len < c->out)
		return -ENOSPC;
	return run_command(req, c);
}

int method_invoke_write(struct ureq *req)
{
	uint32_t number;
	int ret = ureq_const(req, UVERBS_ATTR_WRITE_CMD, &number);

	if (ret < 0)
		return ret;
	req->core_in = ureq_buf(req, UVERBS_ATTR_CORE_IN);
	req->core_out = ureq_buf(req, UVERBS_ATTR_CORE_OUT);
	ret = run_numbered(req, number);
	return ret < 0 ? ret : ureq_put_done(req, UVERBS_ATTR_CORE_OUT);
}

/* ---- write(2): the same, with the buffers cut out of one block ---- */

/*
 * head, then the core struct, then the provider's part; the response likewise.  Where the provider
 * has no part all is the core struct's, which may be longer than we know it.
 */
static int cut_legacy(struct ureq *req, const struct command *c, uint8_t *body, size_t bytes,
		      size_t out_bytes)
{
	size_t core_in = c->uhw ? c->in : bytes, core_out = c->uhw ? c->out : out_bytes;
	uint64_t response = 0;

	if (bytes < c->in || out_bytes < c->out)
		return -ENOSPC;
	if (c->has_response && !usermem_copy(&response, body, sizeof(response)))
		return -EFAULT;
	req->core_in = (struct ubuf){body, core_in};
	req->uhw_in = (struct ubuf){uaddr_at(body, core_in), bytes - core_in};
	if (c->has_response) {
		uint8_t *out = (uint8_t *)(uintptr_t)response;

		req->core_out = (struct ubuf){out, core_out};
		req->uhw_out = (struct ubuf){uaddr_at(out, core_out), out_bytes - core_out};
	}
	return 0;
}

static int check_response(const struct ib_uverbs_ex_cmd_hdr *ex, size_t core_out, size_t need)
{
	if (!ex->response == (core_out || ex->provider_out_words))
		return -EINVAL;
	return ex->response && core_out < need ? -ENOSPC : 0;
}

static int cut_extended(struct ureq *req, const struct command *c, uint8_t *body, size_t bytes,
			const struct ib_uverbs_cmd_hdr *hdr)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	size_t core_in = hdr->in_words * 8u, core_out = hdr->out_words * 8u;
	uint8_t *out;
	int ret;

	if (bytes < sizeof(ex))
		return -EINVAL;
	if (!usermem_copy(&ex, body, sizeof(ex)))
		return -EFAULT;
	if (core_in + ex.provider_in_words * 8u != bytes - sizeof(ex))
		return -EINVAL;
	if (core_in < c->in)
		return -ENOSPC;
	if (ex.cmd_hdr_reserved)
		return -EINVAL;
	ret = check_response(&ex, core_out, c->out);
	if (ret < 0)
		return ret;
	out = (uint8_t *)(uintptr_t)ex.response;
	body += sizeof(ex);
	req->core_in = (struct ubuf){body, core_in};
	req->uhw_in = (struct ubuf){uaddr_at(body, core_in), ex.provider_in_words * 8u};
	req->core_out = (struct ubuf){out, core_out};
	req->uhw_out = (struct ubuf){uaddr_at(out, core_out), ex.provider_out_words * 8u};
	return 0;
}

/* A command that is not there has no extended form: its number is answered after the length. */
static int cut_message(struct ureq *req, const struct command *c, uint8_t *body, size_t bytes,
		       const struct ib_uverbs_cmd_hdr *hdr)
{
	if (c->run && hdr->command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		return cut_extended(req, c, body, bytes, hdr);
	if (hdr->in_words * 4u != sizeof(*hdr) + bytes)
		return -EINVAL;
	return cut_legacy(req, c, body, bytes, hdr->out_words * 4u);
}

ssize_t uverbs_write(struct ufile *f, const void *buf, size_t count)
{
	struct ureq req = {.file = f};
	struct ib_uverbs_cmd_hdr hdr;
	const struct command *c;
	int ret;

	if (count < sizeof(hdr))
		return -EINVAL;
	if (!usermem_copy(&hdr, buf, sizeof(hdr)))
		return -EFAULT;
	ret = find_command(hdr.command, &c);
	if (ret == 0)
		ret = cut_message(&req, c, uaddr_at(buf, sizeof(hdr)), count - sizeof(hdr), &hdr);
	if (ret < 0)
		return ret;

	pthread_mutex_lock(&f->lock);
	ret = run_command(&req, c);
	pthread_mutex_unlock(&f->lock);
	return ret < 0 ? ret : (ssize_t)count;
}
