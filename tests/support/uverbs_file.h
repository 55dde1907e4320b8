/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A uverbs file without descriptor, daemon and device: enough for what looks only at the file.  A
 * test that needs a device puts its adapter into hca.
 */
#pragma once

#include <rdma/rdma_user_ioctl_cmds.h>

#include "driver/uverbs/core/file.h"

struct uverbs_file {
	struct subnet subnet; /* of these two: */
	struct subnet_node node;
	struct subnet_port port;
	struct process process;
	struct hca hca;
	struct ufile file;
};

void uverbs_file_up(struct uverbs_file *u);
void uverbs_file_down(struct uverbs_file *u);

/* One ioctl with these attributes, which get the answers. */
int uverbs_file_ioctl(struct uverbs_file *u, uint16_t object, uint16_t method,
		      struct ib_uverbs_attr *attrs, uint16_t n);
/* Attributes: bytes by address (8 or less stand in the attribute itself), an answer, a handle. */
struct ib_uverbs_attr attr_in(uint16_t id, const void *bytes, uint16_t len);
struct ib_uverbs_attr attr_out(uint16_t id, void *bytes, uint16_t len);
struct ib_uverbs_attr attr_handle(uint16_t id, uint64_t handle);
