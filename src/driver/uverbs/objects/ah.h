/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles. */
#pragma once

#include "driver/uverbs/core/file.h"

struct ib_uverbs_ah_attr;

/*
 * Checks address handle attributes against the port and decodes them; resolves the destination MAC
 * on Ethernet.  Negative errno as ib_core.
 */
int uah_decode(const struct ufile *f, const struct ib_uverbs_ah_attr *in,
	       struct ib_ah *out) must_check;
