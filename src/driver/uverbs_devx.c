// SPDX-License-Identifier: BSD-2-Clause
/*
 * DEVX: commands of the PRM that a program sends to the firmware.  A command that the device
 * refuses is a failure in the mailbox (status and syndrome) and EREMOTEIO, as the kernel gives it.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>

#include "base/endian.h"
#include "base/log.h"
#include "driver/uverbs_objects.h"
#include "prm/hca_cap.h"
#include "wire/usermem.h"

struct mbox_in {
	be16 opcode;
	be16 uid;
	be16 reserved;
	be16 op_mod;
};

struct mbox_out {
	uint8_t status;
	uint8_t reserved[3];
	be32 syndrome;
};

enum mbox_status { MBOX_OK = 0x00, MBOX_BAD_OP = 0x02, MBOX_BAD_PARAM = 0x03 };

static int refuse(const struct ubuf *out, enum mbox_status status)
{
	struct mbox_out head = {.status = status};
	int ret = ubuf_write(out, &head, sizeof(head));

	return ret < 0 ? ret : -EREMOTEIO;
}

static int query_hca_cap(struct ufile *f, uint16_t op_mod, const struct ubuf *out)
{
	const struct registry_port *port = ufile_port(f);
	const struct hca_cap_values values = {
		.ethernet = port->ethernet,
		.gids = uport_gids(port),
		.pkeys = uport_pkeys(port),
	};
	struct {
		struct mbox_out head;
		uint8_t reserved[HCA_CAP_HEADER - sizeof(struct mbox_out)];
		uint8_t page[HCA_CAP_PAGE_BYTES];
	} answer = {0};

	if (!hca_cap_page((enum hca_cap_type)(op_mod >> 1), &values, answer.page)) {
		log_info("devx: no capabilities of type 0x%x", op_mod >> 1);
		return refuse(out, MBOX_BAD_PARAM);
	}
	return ubuf_write(out, &answer, sizeof(answer));
}

int method_devx_other(struct ureq *req)
{
	struct ubuf in = ureq_buf(req, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN);
	struct ubuf out = ureq_buf(req, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT);
	struct mbox_in head;

	if (!usermem_copy(&head, in.ptr, sizeof(head)))
		return -EFAULT;
	if (be16_get(head.opcode) == PRM_OP_QUERY_HCA_CAP)
		return query_hca_cap(req->file, be16_get(head.op_mod), &out);
	/* The kernel has a list of commands that are harmless without an object. */
	log_info("devx: general command 0x%x is not supported", be16_get(head.opcode));
	return -EINVAL;
}
