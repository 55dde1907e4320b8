/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of send work requests. */
#pragma once

#include "adapter/qp/qp.h"

/* The completion of a request that succeeded. */
void send_cqe_success(struct qp *qp, const struct send_op *op);
/* The completion of one that failed with op->syndrome. */
void send_cqe_error(struct qp *qp, const struct send_op *op);
/* A flush error for a request, whether it ever was outstanding or not. */
void send_cqe_flush(struct qp *qp, const struct send_op *op);
