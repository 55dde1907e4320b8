/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs as the DEVX commands see them: made by DEVX or by verbs. */
#pragma once

#include "driver/devx.h"

struct devx_qp {
	struct devx_obj obj;
	struct qp *qp;
	struct doorbell_user bell;
	enum ib_qp_type type;
	/* what a query repeats */
	uint8_t created[0xe8]; /* the QP context of CREATE_QP */
};

/* What a handle names, which devx_is has found to be a queue pair. */
struct devx_qp_target {
	struct qp *qp;
	struct doorbell_user *bell;
	enum ib_qp_type type;
	const uint8_t *created; /* NULL of verbs */
};

struct devx_qp_target devx_qp_target(struct uobj *obj);
