/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words of --link-types and SOFTHCA_LINK_TYPES, which the tool checks and the daemon follows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "registry/registry.h"

#define LINK_TYPES_DEFAULT "ib,eth"
#define LINK_TYPES_BYTES   24u /* bytes of the longest list, with its NUL */

/* The link types of a host's devices; each device has one port. */
struct link_types {
	uint32_t ndevices;
	bool ethernet[SLOT_PORTS];
};

/* LINK_TYPES_DEFAULT */
static const struct link_types link_types_default = {2, {false, true}};

/* Reads "ib,eth", a word for each device: mlx5_0, mlx5_1, ... */
static inline bool link_types_read(const char *text, struct link_types *out)
{
	*out = (struct link_types){0};
	for (;;) {
		size_t n = strcspn(text, ",");
		bool eth = n == 3 && !strncmp(text, "eth", n);

		if (out->ndevices == SLOT_PORTS ||
		    (!eth && (n != 2 || strncmp(text, "ib", n) != 0)))
			return false;
		out->ethernet[out->ndevices++] = eth;
		if (!text[n])
			return true;
		text += n + 1;
	}
}
