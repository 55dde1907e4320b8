/* SPDX-License-Identifier: BSD-2-Clause */
/* What a DC target says about requests that it refuses or drops; after explaining() (base/explain.h). */
#pragma once

#include "adapter/qp/qp.h"
#include "wire/pkt.h"

/* why: as dct.c traces it. */
void dct_explain_drop(struct qp *target, const struct pkt *pkt, const char *why)
	__attribute__((cold));
/* The initiator is told so. */
void dct_explain_key(struct qp *target, const struct pkt *pkt, uint64_t key) __attribute__((cold));
