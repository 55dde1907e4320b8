/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory of steering as an object of its file.  Only one process steers by it, so unlike
 * other device memory it is not shared with children. */
#pragma once

#include "driver/uverbs/core/request.h"

struct icm_part;

struct uicm {
	struct uobj uobj;
	struct icm_part *part;
};

/* type: MLX5_IB_UAPI_DM_TYPE_*.  -EOPNOTSUPP: the type is none of steering. */
int uicm_create(struct ureq *req, uint64_t type, uint64_t bytes, struct uicm **out) must_check;
uint64_t uicm_address(const struct uicm *icm);
/* The memory at a range of it; NULL: the range does not lie inside. */
uint8_t *uicm_memory(const struct uicm *icm, uint64_t offset, uint64_t bytes);
