/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of send work requests. */
#pragma once

#include "adapter/qp/qp.h"

/* Completes a request that has succeeded. */
void send_cqe_success(struct qp *qp, const struct send_op *op);
/* Completes a request that has failed with op->syndrome. */
void send_cqe_error(struct qp *qp, const struct send_op *op);
/* Completes a request with a flush error, whether it was ever outstanding or not. */
void send_cqe_flush(struct qp *qp, const struct send_op *op);
