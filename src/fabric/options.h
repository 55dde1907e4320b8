/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of options that the tool checks, and the daemon or programs follow. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "registry/registry.h"
#include "subnet/subnet.h"

/*
 * The words of --link-types and SOFTHCA_LINK_TYPES, which the tool checks and the daemon follows.
 */

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

/* The names of --device-names and SOFTHCA_DEVICE_NAMES, which the tool and the daemon check. */

#define DEVICE_NAMES_BYTES ((uint32_t)SLOT_PORTS * SUBNET_NAME_BYTES) /* of the longest list */

/* The names of a host's first devices; the others are called mlx5_0, mlx5_1, ... by their index. */
struct device_names {
	uint32_t n;
	char name[SLOT_PORTS][SUBNET_NAME_BYTES];
};

/*
 * Reads names with commas between them.  ndevices: how many devices a host has, 0 if that is not
 * known.  Returns NULL, or what is wrong.
 */
const char *device_names_read(const char *text, uint32_t ndevices,
			      struct device_names *out) must_check;
/* Gives the name of the device with this index; out has SUBNET_NAME_BYTES. */
void device_name_of(const struct device_names *names, uint32_t device, char *out);

/* The names of --memory and SOFTHCA_MEMORY, which the tool checks and programs follow. */

/* How peers reach the memory of a program; softhca(1), --memory. */
enum memory_way {
	MEMORY_AUTO,
	MEMORY_KERNEL,
	MEMORY_PACKETS,
	MEMORY_WAYS /* how many ways there are */
};

#define MEMORY_WAY_NAMES "auto, kernel or packets"

/* Returns the way of that name, or MEMORY_WAYS if there is none. */
static inline enum memory_way memory_way_find(const char *name)
{
	static const char *const names[MEMORY_WAYS] = {"auto", "kernel", "packets"};
	unsigned i = 0;

	while (i < MEMORY_WAYS && strcmp(name, names[i]) != 0)
		i++;
	return (enum memory_way)i;
}
