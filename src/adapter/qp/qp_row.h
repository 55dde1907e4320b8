/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs as people see them (exposure/object.h). */
#pragma once

#include "adapter/qp/qp.h"

/* Says where queue pairs have their figures; a process need call it only once. */
void qp_form_expose(struct wire *wire);
/* Lists the queue pair, whose numbers are set, and sets qp->row. */
void qp_list(struct qp *qp);
