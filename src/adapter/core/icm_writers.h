/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs that a program has connected to themselves, to write steering entries with
 * them. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/spin.h"

struct qp;

#define ICM_WRITERS 256u

struct icm_writers {
	struct spin lock; /* held by threads that change it; readers take none */
	_Atomic(uint32_t) n;
	struct {
		_Atomic(struct qp *) qp;
		_Atomic(uint32_t) seen; /* all requests up to this producer counter are done */
	} row[ICM_WRITERS];
};
