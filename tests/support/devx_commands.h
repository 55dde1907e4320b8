/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of DEVX to a file (uverbs_file.h), by the methods that carry them. */
#pragma once

#include "prm/cmd.h"
#include "uverbs_file.h"

/* The mailboxes, and the file that they go to. */
struct devx_commands {
	struct uverbs_file *u;
	uint8_t in[1024], out[1024];
};

/* Each 0 or a negative errno; the answer is in out. */
int devx_command_create(struct devx_commands *c, uint16_t in_len, uint64_t *handle);
int devx_command_destroy(struct devx_commands *c, uint64_t handle);
int devx_command_modify(struct devx_commands *c, uint64_t handle, uint16_t in_len);
/* With an input of its own. */
int devx_command_query(struct devx_commands *c, enum prm_opcode op, uint64_t handle,
		       uint32_t number, uint16_t out_len);
