/* SPDX-License-Identifier: BSD-2-Clause */
/* What a DC target says about requests that it refuses or drops; call these after explaining()
 * (base/explain.h). */
#pragma once

#include "adapter/qp/qp.h"
#include "wire/pkt.h"

/* why: the text that dct.c traces. */
void dct_explain_drop(struct qp *target, const struct pkt *pkt, const char *why)
	__attribute__((cold));
/* Explains a wrong access key, of which the initiator hears. */
void dct_explain_key(struct qp *target, const struct pkt *pkt, uint64_t key) __attribute__((cold));
