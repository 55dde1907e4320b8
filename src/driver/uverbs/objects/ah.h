/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles. */
#pragma once

#include "driver/uverbs/core/file.h"

struct ib_uverbs_ah_attr;

/* Checks address handle attributes against the port and decodes them.  Negative errno as ib_core. */
int uah_decode(const struct ufile *f, const struct ib_uverbs_ah_attr *in,
	       struct ib_ah *out) must_check;

/* Finds the destination MAC of a decoded address on Ethernet, and does nothing on InfiniBand. */
int uah_resolve(const struct ufile *f, struct ib_ah *ah) must_check;
