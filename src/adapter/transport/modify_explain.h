/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes why a queue pair is not modified (base/explain.h); call these after explaining(). */
#pragma once

#include "adapter/qp/qp.h"
#include "base/explain.h"

/* The transition does not exist, or does not take these attributes. */
void explain_transition(const struct qp *qp, enum ib_qp_state cur, enum ib_qp_state next,
			uint32_t mask) __attribute__((cold));
/* The queue pair is not in the state that the program says. */
void explain_cur_state(const struct qp *qp, enum ib_qp_state cur, enum ib_qp_state said)
	__attribute__((cold));
