// SPDX-License-Identifier: BSD-2-Clause
/* The DEVX methods of uverbs, and the list of commands that they carry. */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain.h"
#include "base/log.h"
#include "base/trace.h"
#include "driver/devx/devx.h"
#include "usermem/usermem.h"

/* ---- the commands ---- */

/*
 * The list of the files with commands, and the commands that mlx5_ib lets pass but this device does
 * not have.  A command without a row never reaches a device.
 */

#define LACKS(op, how)                                              \
	{                                                           \
		.opcode = PRM_OP_##op, .method = (how), .name = #op \
	}

static const struct devx_op lacking[] = {
	LACKS(QUERY_ROCE_ADDRESS, DEVX_GENERAL),
	LACKS(QUERY_VNIC_ENV, DEVX_GENERAL),
	LACKS(QUERY_VPORT_COUNTER, DEVX_GENERAL),
	LACKS(QUERY_CONG_STATUS, DEVX_GENERAL),
	LACKS(QUERY_CONG_PARAMS, DEVX_GENERAL),
	LACKS(QUERY_CONG_STATISTICS, DEVX_GENERAL),
	LACKS(ALLOC_Q_COUNTER, DEVX_OBJ_CREATE),
	LACKS(ALLOC_MODIFY_HEADER_CONTEXT, DEVX_OBJ_CREATE),
	LACKS(CREATE_SCHEDULING_ELEMENT, DEVX_OBJ_CREATE),
	LACKS(ADD_VXLAN_UDP_DPORT, DEVX_OBJ_CREATE),
	LACKS(SET_L2_TABLE_ENTRY, DEVX_OBJ_CREATE),
	LACKS(CREATE_SRQ, DEVX_OBJ_CREATE),
	LACKS(CREATE_XRC_SRQ, DEVX_OBJ_CREATE),
	LACKS(CREATE_XRQ, DEVX_OBJ_CREATE),
	LACKS(ATTACH_TO_MCG, DEVX_OBJ_CREATE),
	LACKS(ARM_XRC_SRQ, DEVX_OBJ_MODIFY),
	LACKS(QUERY_XRC_SRQ, DEVX_OBJ_QUERY),
};

static const struct devx_family lacking_family = DEVX_FAMILY(lacking);

/* The first family is the one whose commands a program sends at the pace of its calls. */
static const struct devx_family *const families[] = {
	&devx_dpa_family,     &devx_port_family,       &devx_domain_family,    &devx_memory_family,
	&devx_cq_family,      &devx_rmp_family,	       &devx_qp_family,	       &devx_dct_family,
	&devx_general_family, &devx_dpa_thread_family, &devx_rq_family,	       &devx_sq_family,
	&devx_flow_family,    &devx_eq_family,	       &devx_emulation_family, &lacking_family,
};

static const struct devx_op *family_op(const struct devx_family *f, uint16_t opcode,
				       enum devx_method method)
{
	for (size_t i = 0; i < f->nops; i++)
		if (f->ops[i].opcode == opcode && f->ops[i].method == method)
			return &f->ops[i];
	return NULL;
}

/* NULL if the kernel does not let the opcode pass by that method either. */
static const struct devx_op *devx_op_find(uint16_t opcode, enum devx_method method)
{
	for (size_t i = 0; i < array_size(families); i++) {
		const struct devx_op *op = family_op(families[i], opcode, method);

		if (op)
			return op;
	}
	return NULL;
}

/* ---- the methods ---- */

/*
 * The DEVX methods of uverbs.  A method copies the mailbox that comes in and checks it as mlx5_ib
 * does; the device's part (devx.h) performs it, and the method sends the answer out.
 */

/* One call on its way through the methods. */
struct mailbox {
	const struct devx_op *op;
	struct devx_call call;
	uint8_t *memory; /* holds both mailboxes */
};

/* The status that the mailbox has for a handler's errno. */
static enum cmd_status cmd_status_of(int err)
{
	static const struct {
		int err;
		enum cmd_status status;
	} names[] = {
		{-EINVAL, CMD_STATUS_BAD_PARAM}, {-EOPNOTSUPP, CMD_STATUS_BAD_OP},
		{-EBUSY, CMD_STATUS_RES_BUSY},	 {-ENOENT, CMD_STATUS_BAD_RES},
		{-ENOSPC, CMD_STATUS_LIMIT},	 {-ENOMEM, CMD_STATUS_NO_RES},
		{-EMFILE, CMD_STATUS_LIMIT},
	};

	for (size_t i = 0; i < array_size(names); i++)
		if (names[i].err == err)
			return names[i].status;
	return CMD_STATUS_INTERNAL;
}

/* Lines about commands that are refused for the same reason are alike, and no others. */
static uint64_t reason_subject(const char *reason)
{
	uint64_t h = 0;

	while (*reason)
		h = (h ^ (uint8_t)*reason++) * 0x100000001b3u;
	return h;
}

/* Says no more than the status of what makes no object and has no reason: libraries ask the device
 * much that they do not expect it to do. */
static void mailbox_explain(const struct mailbox *m, enum cmd_status status, int err)
{
	const char *reason = explain_reason(m->op->create ? strerror(-err) : "");

	if (!*reason)
		return;
	explain_line(reason_subject(reason), "%s is refused (%s): %s", m->op->name,
		     cmd_status_name(status), reason);
}

/* The syndrome is for people who support the firmware; ours repeats what was refused and why. */
static int mailbox_refuse(struct mailbox *m, enum cmd_status status, int err)
{
	trace(prm, refused, m->op->name, cmd_status_name(status), trace_errno(err));
	log_info("devx: %s: status 0x%x (%s)", m->op->name, status, strerror(-err));
	if (explaining())
		mailbox_explain(m, status, err);
	memset(m->call.out, 0, m->call.out_len);
	prm_set(m->call.out, CMD_OUT_STATUS, status);
	prm_set(m->call.out, CMD_OUT_SYNDROME, (uint32_t)m->op->opcode << 16 | (uint32_t)-err);
	return -EREMOTEIO;
}

/* Puts both mailboxes into our memory; the output has at least the length of a header. */
static int mailbox_open(struct ureq *req, struct mailbox *m, const struct ubuf *in, size_t out_len)
{
	size_t in_room = align_up(in->len, 8);

	*m = (struct mailbox){.memory = calloc(1, in_room + out_len)};
	if (!m->memory)
		return -ENOMEM;
	if (!usermem_copy(m->memory, in->ptr, in->len)) {
		free(m->memory);
		return -EFAULT;
	}
	m->call = (struct devx_call){
		.file = req->file,
		.in = m->memory,
		.in_len = in->len,
		.out = m->memory + in_room,
		.out_len = out_len,
	};
	return 0;
}

static int devx_refused(const struct mailbox *m, int err, const char *why)
{
	trace(devx, refused, m->op ? m->op->name : "unknown", prm_get(m->call.in, CMD_IN_OPCODE),
	      trace_errno(err), why);
	return err;
}

/* If several kinds fit, the object that the command asks about says which. */
static bool mailbox_names_target(const struct mailbox *m)
{
	uint32_t number = prm_get32(m->call.in, m->op->number);

	return m->op->class ? devx_is(m->call.target, m->op->class, number)
			    : devx_is_numbered(m->call.target, number);
}

/* Checks what the kernel checks.  The attributes make sure that both mailboxes hold a header. */
static int mailbox_check_method(struct mailbox *m, enum devx_method method)
{
	uint16_t opcode = (uint16_t)prm_get(m->call.in, CMD_IN_OPCODE);

	/* A context without DEVX may still ask what the device can do. */
	if (!m->call.file->devx && opcode != PRM_OP_QUERY_HCA_CAP &&
	    opcode != PRM_OP_QUERY_HCA_VPORT_CONTEXT)
		return devx_refused(m, -EINVAL, "context-without-devx");
	/* The device has no other function that a command could be for. */
	if (prm_get(m->call.in, CMD_IN_VHCA_TUNNEL))
		return devx_refused(m, -EINVAL, "for-another-function");
	m->op = devx_op_find(opcode, method);
	if (!m->op) {
		log_info("devx: command 0x%x is not known to this method", opcode);
		return devx_refused(m, -EINVAL, "unknown-to-method");
	}
	if (m->op->admits && !m->op->admits(m->call.in))
		return devx_refused(m, -EINVAL, "not-admitted");
	/* Firmware would answer CMD_STATUS_BAD_OP, which libmlx5 turns into EINVAL: then a program
	 * could not tell a missing feature from a mistake. */
	if (!m->op->run && !m->op->create) {
		log_info("devx: %s is not supported", m->op->name);
		return devx_refused(m, -EOPNOTSUPP, "not-supported");
	}
	if ((method == DEVX_OBJ_MODIFY || method == DEVX_OBJ_QUERY) && !mailbox_names_target(m))
		return devx_refused(m, -EINVAL, "other-object");
	return 0;
}

/* Checks what the firmware checks first. */
static int mailbox_check_lengths(struct mailbox *m)
{
	int err;

	/* What was noted before, and is no reason of this command's, goes. */
	if (explaining())
		(void)explain_reason("");
	if (m->call.in_len < m->op->in_bytes) {
		err = explained(-EINVAL, "its input has %zu bytes, and %u are needed",
				m->call.in_len, m->op->in_bytes);
		return mailbox_refuse(m, CMD_STATUS_BAD_INPUT_LEN, err);
	}
	if (m->call.out_len < m->op->out_bytes) {
		err = explained(-EINVAL, "its output has %zu bytes, and %u are needed",
				m->call.out_len, m->op->out_bytes);
		return mailbox_refuse(m, CMD_STATUS_BAD_OUTPUT_LEN, err);
	}
	return 0;
}

static int mailbox_run(struct mailbox *m)
{
	int ret = mailbox_check_lengths(m);

	if (ret < 0)
		return ret;
	ret = m->op->run(&m->call);
	return ret < 0 ? mailbox_refuse(m, cmd_status_of(ret), ret) : 0;
}

/* Writes the answer, also that of a command that was refused. */
static int mailbox_answer(struct ureq *req, const struct mailbox *m, uint16_t out_id, int ret)
{
	int err;

	if (ret < 0 && ret != -EREMOTEIO)
		return ret;
	err = ureq_put(req, out_id, m->call.out, m->call.out_len);
	return err < 0 ? err : ret;
}

/* The handle may also be that of a verbs object. */
static int target_find(struct ureq *req, uint16_t handle_id, struct uobj **out)
{
	*out = uobj_any(req->file, ureq_handle(req, handle_id));
	return *out ? 0 : -ENOENT;
}

static int mailbox_run_method(struct ureq *req, enum devx_method method, uint16_t in_id,
			      uint16_t out_id, struct uobj *target)
{
	struct ubuf in = ureq_buf(req, in_id), out = ureq_buf(req, out_id);
	struct mailbox m;
	int ret = mailbox_open(req, &m, &in, out.len);

	if (ret < 0)
		return ret;
	m.call.target = target;
	ret = mailbox_check_method(&m, method);
	if (ret == 0)
		ret = mailbox_answer(req, &m, out_id, mailbox_run(&m));
	free(m.memory);
	return ret;
}

static int method_devx_other(struct ureq *req)
{
	return mailbox_run_method(req, DEVX_GENERAL, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN,
				  MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, NULL);
}

static int method_devx_obj_modify(struct ureq *req)
{
	struct uobj *target;
	int ret = target_find(req, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, &target);

	return ret < 0 ? ret
		       : mailbox_run_method(req, DEVX_OBJ_MODIFY,
					    MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
					    MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, target);
}

static int method_devx_obj_query(struct ureq *req)
{
	struct uobj *target;
	int ret = target_find(req, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, &target);

	return ret < 0 ? ret
		       : mailbox_run_method(req, DEVX_OBJ_QUERY, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
					    MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, target);
}

/* Performs the query at once; only the way of the answer, through the channel, is asynchronous. */
static int method_devx_obj_query_async(struct ureq *req)
{
	struct ubuf in = ureq_buf(req, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN);
	uint64_t out_len = ureq_u64(req, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN);
	struct devx_async *channel;
	struct uobj *target;
	struct mailbox m;
	int ret = target_find(req, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, &target);

	if (ret < 0)
		return ret;
	if (out_len > UINT16_MAX)
		return -EINVAL;
	ret = devx_async_find(req->file,
			      (int64_t)ureq_handle(req, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD),
			      &channel);
	if (ret < 0)
		return ret;
	ret = mailbox_open(req, &m, &in, out_len < CMD_OUT_BYTES ? CMD_OUT_BYTES : out_len);
	if (ret < 0)
		goto put;
	m.call.target = target;
	ret = mailbox_check_method(&m, DEVX_OBJ_QUERY);
	if (ret == 0) {
		/* The mailbox tells of a refusal, too. */
		(void)mailbox_run(&m);
		ret = devx_async_post(channel,
				      ureq_u64(req, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID),
				      m.call.out, out_len);
	}
	free(m.memory);
put:
	devx_async_put(channel);
	return ret;
}

static int mailbox_create_object(struct ureq *req, struct mailbox *m)
{
	struct devx_obj *obj;
	int ret = mailbox_check_lengths(m);

	if (ret < 0)
		return ret;
	ret = m->op->create(&m->call, &obj);
	if (ret < 0)
		return mailbox_refuse(m, cmd_status_of(ret), ret);
	ret = uobj_publish(req->file, &obj->uobj, &udevx_class);
	if (ret < 0) {
		devx_discard(req->file, obj);
		return ret;
	}
	ret = ureq_put(req, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, m->call.out, m->call.out_len);
	if (ret == 0)
		ret = ureq_put_handle(req, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, obj->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&obj->uobj, NULL);
	return ret;
}

static int method_devx_obj_create(struct ureq *req)
{
	struct ubuf in = ureq_buf(req, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN);
	struct ubuf out = ureq_buf(req, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT);
	struct mailbox m;
	int ret = mailbox_open(req, &m, &in, out.len);

	if (ret < 0)
		return ret;
	ret = mailbox_check_method(&m, DEVX_OBJ_CREATE);
	if (ret == 0)
		ret = mailbox_create_object(req, &m);
	if (ret == -EREMOTEIO)
		ret = mailbox_answer(req, &m, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, ret);
	free(m.memory);
	return ret;
}

static int method_devx_query_eqn(struct ureq *req)
{
	uint32_t vector = ureq_u32(req, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC);

	if (vector >= uverbs_comp_vectors())
		return -ENOENT;
	return ureq_put_u32(req, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, DEVX_EQN_FIRST + vector);
}

/* Converts the index of a static doorbell register; a context with dynamic ones has none. */
static int method_devx_query_uar(struct ureq *req)
{
	(void)req;
	return -EINVAL;
}

/* ---- what requests reach this family ---- */

static const struct attr_spec other_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, OUT_MIN(CMD_OUT_BYTES)},
};

static const struct attr_spec query_uar_attrs[] = {
	{MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, IN(4)},
	{MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, OUT(4)},
};

static const struct attr_spec query_eqn_attrs[] = {
	{MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, IN(4)},
	{MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, OUT(4)},
};

static const struct attr_spec obj_create_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, OUT_MIN(CMD_OUT_BYTES)},
};

static const struct attr_spec obj_destroy_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, IDR(UOBJ_DEVX)},
};

static const struct attr_spec obj_modify_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, OUT_MIN(CMD_OUT_BYTES)},
};

static const struct attr_spec obj_query_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, OUT_MIN(CMD_OUT_BYTES)},
};

static const struct attr_spec obj_query_async_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, ATTR_NUMBER},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID, IN(8)},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN, CONST_IN},
};

static const struct method_spec methods[] = {
	METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, method_devx_other, other_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, method_devx_query_uar,
	       query_uar_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, method_devx_query_eqn,
	       query_eqn_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, method_devx_obj_create,
	       obj_create_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, method_destroy,
	       obj_destroy_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, method_devx_obj_modify,
	       obj_modify_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, method_devx_obj_query,
	       obj_query_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY,
	       method_devx_obj_query_async, obj_query_async_attrs),
};

const struct uverbs_family udevx_family = {METHODS(methods)};
