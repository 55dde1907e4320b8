/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs as the DEVX commands see them: made by DEVX or by verbs. */
#pragma once

#include "driver/devx/devx.h"

struct devx_qp {
	struct devx_obj obj;
	struct qp *qp;
	struct doorbell_user bell;
	enum ib_qp_type type;
	/* what a query repeats */
	uint8_t created[0xe8]; /* the QP context of CREATE_QP */
};

/* The object that a handle names, which devx_is has found to be a queue pair. */
struct devx_qp_target {
	struct qp *qp;
	struct doorbell_user *bell;
	enum ib_qp_type type;
	uint8_t *created; /* NULL for a queue pair of verbs */
};

extern const struct devx_class devx_qp_class;

struct devx_qp_target devx_qp_target(struct uobj *obj);

/* Checks the options beyond the first 32 of a transition that has a context: the device must know
 * them (-EOPNOTSUPP), and their data must be there (-EINVAL). */
int devx_qp_ext_check(const struct devx_call *c, uint16_t opcode, enum ib_qp_type type) must_check;
/* Carries them out, after the transition. */
int devx_qp_ext_apply(const struct devx_call *c, struct qp *qp) must_check;
