/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands of DEVX on their way to a handler: what the kernel refuses by errno, what the firmware
 * refuses by a status in the mailbox, and what an object that others use does.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <string.h>

#include "adapter_device.h"
#include "check.h"
#include "driver/devx/devx.h"
#include "prm/cmd.h"
#include "prm/cmd_mkey.h"
#include "uverbs_file.h"

static struct test_device device;
static struct uverbs_file u;
static uint8_t in[512], out[1024];

static void run_command(uint16_t opcode)
{
	memset(in, 0, sizeof(in));
	memset(out, 0xee, sizeof(out));
	prm_set(in, CMD_IN_OPCODE, opcode);
}

static int other_command(uint16_t in_len, uint16_t out_len)
{
	struct ib_uverbs_attr attrs[] = {
		attr_in(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, in_len),
		attr_out(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, out_len),
	};

	return uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, attrs,
				 array_size(attrs));
}

static int create_object(uint16_t in_len, uint64_t *handle)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0),
		attr_in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, in_len),
		attr_out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, CMD_OUT_BYTES),
	};
	int ret = uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
				    attrs, array_size(attrs));

	if (handle)
		*handle = attrs[0].data;
	return ret;
}

static int destroy_object(uint64_t handle)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle),
	};

	return uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 attrs, array_size(attrs));
}

static int named_method(uint16_t method, uint64_t handle)
{
	bool query = method == MLX5_IB_METHOD_DEVX_OBJ_QUERY;
	struct ib_uverbs_attr attrs[] = {
		attr_handle(query ? (uint16_t)MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE
				  : (uint16_t)MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE,
			    handle),
		attr_in(query ? (uint16_t)MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN
			      : (uint16_t)MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
			in, 64),
		attr_out(query ? (uint16_t)MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT
			       : (uint16_t)MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT,
			 out, sizeof(out)),
	};

	return uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX_OBJ, method, attrs, array_size(attrs));
}

/* The firmware's refusal: a status, and which command it was for which errno. */
static void expect_status(uint16_t opcode, enum cmd_status status, int err)
{
	CHECK(prm_get(out, CMD_OUT_STATUS) == status);
	CHECK(prm_get32(out, CMD_OUT_SYNDROME) == ((uint32_t)opcode << 16 | (uint32_t)err));
}

static void test_methods(void)
{
	run_command(0xfff);
	CHECK(other_command(16, 16) == -EINVAL);
	run_command(PRM_OP_QUERY_CONG_STATUS);
	CHECK(other_command(16, 16) == -EOPNOTSUPP);
	/* each opcode has its method */
	run_command(PRM_OP_ALLOC_PD);
	CHECK(other_command(16, 16) == -EINVAL);
	run_command(PRM_OP_QUERY_CONG_STATUS);
	CHECK(create_object(16, NULL) == -EINVAL);
	run_command(PRM_OP_CREATE_SCHEDULING_ELEMENT);
	CHECK(create_object(16, NULL) == -EOPNOTSUPP);
	/* mailboxes hold a header */
	run_command(PRM_OP_ALLOC_PD);
	CHECK(create_object(15, NULL) == -EINVAL);
	/* for another function of the device */
	prm_set(in, CMD_IN_VHCA_TUNNEL, 1);
	CHECK(create_object(16, NULL) == -EINVAL);
	/* a context without DEVX asks what there is, and makes nothing */
	u.file.devx = false;
	run_command(PRM_OP_ALLOC_PD);
	CHECK(create_object(16, NULL) == -EINVAL);
	run_command(PRM_OP_QUERY_HCA_VPORT_CONTEXT);
	CHECK(other_command(16, HCA_VPORT_OUT_BYTES - 1) == -EREMOTEIO);
	u.file.devx = true;
	CHECK(out[0] != 0xee && !u.file.objects.limit);
}

static void test_mailboxes(void)
{
	run_command(PRM_OP_QUERY_HCA_VPORT_CONTEXT);
	CHECK(other_command(16, HCA_VPORT_OUT_BYTES - 1) == -EREMOTEIO);
	expect_status(PRM_OP_QUERY_HCA_VPORT_CONTEXT, CMD_STATUS_BAD_OUTPUT_LEN, EINVAL);
	CHECK(!out[HCA_VPORT_OUT_BYTES - 2] && out[HCA_VPORT_OUT_BYTES - 1] == 0xee);
	run_command(PRM_OP_CREATE_MKEY);
	CHECK(create_object(16, NULL) == -EREMOTEIO);
	expect_status(PRM_OP_CREATE_MKEY, CMD_STATUS_BAD_INPUT_LEN, EINVAL);
	run_command(PRM_OP_CREATE_GENERAL_OBJECT);
	prm_set(in, GENERAL_IN_TYPE, 0x7777);
	CHECK(create_object(16, NULL) == -EREMOTEIO);
	expect_status(PRM_OP_CREATE_GENERAL_OBJECT, CMD_STATUS_BAD_OP, EOPNOTSUPP);
}

static void psv_request(uint32_t pdn, unsigned count)
{
	run_command(PRM_OP_CREATE_PSV);
	prm_set(in, CREATE_PSV_PD, pdn);
	prm_set(in, CREATE_PSV_COUNT, count);
}

static int psv_make(uint64_t *handle)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0),
		attr_in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, 64),
		attr_out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, CREATE_PSV_OUT_BYTES),
	};
	int ret = uverbs_file_ioctl(&u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
				    attrs, array_size(attrs));

	*handle = attrs[0].data;
	return ret;
}

static void test_objects(void)
{
	uint64_t pd, psv, mapping;
	uint32_t pdn, number;

	run_command(PRM_OP_ALLOC_PD);
	CHECK(!create_object(16, &pd) && !prm_get(out, CMD_OUT_STATUS));
	pdn = prm_get32(out, CMD_OUT_NUMBER);
	/* the kernel lets through one at a time */
	psv_request(pdn, 2);
	CHECK(psv_make(&psv) == -EINVAL);
	/* numbers are found by their kind, and in this file only */
	psv_request(pdn + 1, 1);
	CHECK(psv_make(&psv) == -EREMOTEIO);
	expect_status(PRM_OP_CREATE_PSV, CMD_STATUS_BAD_PARAM, EINVAL);
	psv_request(pdn, 1);
	CHECK(!psv_make(&psv));
	number = prm_get32(out, CREATE_PSV_INDEX);
	CHECK(destroy_object(pd) == -EBUSY);

	/* the handle is of the object that the mailbox names, and of its kind */
	run_command(PRM_OP_QUERY_MKEY);
	prm_set(in, CMD_IN_NUMBER, number);
	CHECK(named_method(MLX5_IB_METHOD_DEVX_OBJ_QUERY, psv) == -EINVAL);
	CHECK(named_method(MLX5_IB_METHOD_DEVX_OBJ_QUERY, 99) == -ENOENT);
	run_command(PRM_OP_ARM_XRC_SRQ);
	CHECK(named_method(MLX5_IB_METHOD_DEVX_OBJ_MODIFY, psv) == -EOPNOTSUPP);
	CHECK(named_method(MLX5_IB_METHOD_DEVX_OBJ_QUERY, psv) == -EINVAL);

	/* a kind that has nothing of the device */
	run_command(PRM_OP_CREATE_GENERAL_OBJECT);
	prm_set(in, GENERAL_IN_TYPE, GENERAL_AV_QP_MAPPING);
	CHECK(create_object(AV_QP_MAPPING_IN_BYTES, &mapping) == 0 && !destroy_object(mapping));

	CHECK(!destroy_object(psv) && destroy_object(psv) == -ENOENT);
	CHECK(!destroy_object(pd));
}

int main(void)
{
	device_up(&device);
	uverbs_file_up(&u);
	u.hca.adapter = device.adapter[0];
	test_methods();
	test_mailboxes();
	test_objects();
	uverbs_file_down(&u);
	device_down(&device);
	return 0;
}
