/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts of doorbells of emulated functions, as device code rings them.  A context is armed by device code, and then fires
 * once: when a driver of the function rings, or at once if one has rung since it fired last.  To fire is to write an empty
 * completion, whose event starts the handler.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "base/compiler.h"

struct db_bell {
	struct adapter *adapter; /* of the CQ, which is there as long as the context */
	uint32_t region, cqn;
	/* of this file */
	struct db_bell *next;
	uint32_t handle;
	bool armed;
	bool rung; /* since it fired last */
};

/* Its handle, above 0, or -ENOSPC.  It can be rung from now on. */
int db_bell_link(struct db_bell *b) must_check;
/* On return nobody rings it any more. */
void db_bell_unlink(struct db_bell *b);
/* A driver has rung. */
void db_bell_rung(struct db_bell *b);
/*
 * Device code arms the context whose CQ has this region and number, or takes it for rung.  If there is none with all of
 * these, nothing happens.
 */
void db_bell_ring(uint32_t region, uint32_t cqn, uint32_t handle, bool force);
