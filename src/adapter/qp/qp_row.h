/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs as people see them (exposure/object.h). */
#pragma once

#include "adapter/qp/qp.h"

/* Says where queue pairs have their figures; once in a process is enough. */
void qp_form_expose(struct wire *wire);
/* Lists the queue pair, whose numbers are set; qp->row is where. */
void qp_list(struct qp *qp);
