/* SPDX-License-Identifier: BSD-2-Clause */
/* The state transitions that a QP may make, and their attributes (IBTA 11.2.5.2, table 99 ff.). */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "prm/ib.h"

/* Attributes of a transition, as bits of enum ib_qp_attr_mask. */
struct qp_rule {
	uint32_t required;
	uint32_t optional;
};

/* False: there is no such transition. */
bool qp_transition_rule(enum ib_qp_type type, enum ib_qp_state cur, enum ib_qp_state next,
			struct qp_rule *out) must_check;
/* True if a QP of this type may go from cur to next with exactly these attributes. */
bool qp_transition_ok(enum ib_qp_type type, enum ib_qp_state cur, enum ib_qp_state next,
		      uint32_t mask) must_check;
const char *qp_state_name(enum ib_qp_state state);
