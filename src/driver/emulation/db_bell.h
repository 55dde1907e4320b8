/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts of doorbells of emulated functions.  Device code arms a context, which then fires once:
 * when a driver of the function rings, or at once if one has rung since it fired last.  To fire is
 * to write an empty completion, whose event starts the handler.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "base/compiler.h"

struct db_bell {
	struct adapter *adapter; /* of the CQ, which lives as long as the context */
	uint32_t region, cqn;
	/* for db_bell.c alone */
	struct db_bell *next;
	uint32_t handle;
	bool armed;
	bool rung; /* a driver has rung since it fired last */
};

/* Returns its handle, above 0, or -ENOSPC.  From now on others can ring it. */
int db_bell_link(struct db_bell *b) must_check;
/* On return nobody rings it any more. */
void db_bell_unlink(struct db_bell *b);
/* A driver has rung. */
void db_bell_rung(struct db_bell *b);
/*
 * Device code arms the context whose CQ has this region and number, or forces it to fire.  Nothing
 * happens if no context has all of these.
 */
void db_bell_ring(uint32_t region, uint32_t cqn, uint32_t handle, bool force);
