/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What creation and modification of queue pairs need to know of dynamically connected ones.  The
 * ABI has one type for all types that are the driver's own; mlx5's private part says which is
 * meant.
 */
#pragma once

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "driver/uverbs/objects/qp.h"

struct ib_uverbs_qp_cap;

/* Replaces the type DRIVER by the one meant; -EINVAL if it is unclear. */
int uqp_driver_type(const struct mlx5_ib_create_qp *uhw, uint64_t *type) must_check;
/* -EINVAL if a QP of a DC type has other parts than it takes; 0 for other types. */
int uqp_check_dc(uint64_t type, const struct usrq *srq,
		 const struct ib_uverbs_qp_cap *cap) must_check;
/* Private creation flags of a DC type. */
uint32_t uqp_dc_flags(uint64_t type);
void uqp_dc_attributes(uint64_t type, const struct mlx5_ib_create_qp *uhw,
		       struct qp_create_attr *attr);
/* The number as the program sees it: a DCT gets its number at the transition to RTR. */
uint32_t uqp_number(const struct uqp *qp);
/* Before a modification: whether the answer has room for the number that a DCT gets. */
int uqp_check_modify_dc(const struct uqp *qp, const struct ib_uverbs_modify_qp *cmd,
			uint64_t answer_bytes) must_check;
