/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs that a program connects to themselves, to write steering entries with them. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/spin.h"

struct qp;

#define ICM_WRITERS 256u

struct icm_writers {
	struct spin lock; /* of those who change it; readers are under RCU */
	_Atomic(uint32_t) n;
	struct {
		_Atomic(struct qp *) qp;
		_Atomic(uint32_t) seen; /* the producer counter up to which all has been done */
	} row[ICM_WRITERS];
};
