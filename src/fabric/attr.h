/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of a port's attributes, below .../infiniband/<hca>/ports/<port>/, and of its device's.
 * The daemon writes files by these tables and renders their text; clients use them to tell which
 * paths are worth asking about.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "subnet/subnet.h"
#include "registry/registry.h"

enum port_attr {
	ATTR_LID,
	ATTR_LID_MASK_COUNT,
	ATTR_SM_LID,
	ATTR_SM_SL,
	ATTR_STATE,
	ATTR_PHYS_STATE,
	ATTR_RATE,
	ATTR_CAP_MASK,
	ATTR_LINK_LAYER,
	PORT_ATTRS,
};

extern const char *const port_attr_name[PORT_ATTRS];
/* The only attribute of GROUP_DEVICE. */
#define ATTR_DESCRIPTION "node_desc"

/*
 * A file of counters/ or hw_counters/.  A counter of something that cannot happen to the software
 * device (a symbol error, a congestion notification) reads as the constant that idle hardware
 * shows.
 */
struct counter_attr {
	const char *name;
	int32_t counter; /* enum port_counter, or COUNTER_FIXED */
	uint32_t fixed;
};

#define COUNTER_FIXED (-1)

extern const struct counter_attr counter_attrs[];
extern const uint32_t ncounter_attrs;
extern const struct counter_attr hw_counter_attrs[];
extern const uint32_t nhw_counter_attrs;
/* What a port's query gives and no file has (PortInfo, IBTA 14.2.5.6), by verbs' names. */
extern const struct counter_attr violation_attrs[];
extern const uint32_t nviolation_attrs;

enum attr_group {
	GROUP_PORT,
	GROUP_COUNTERS,
	GROUP_HW_COUNTERS,
	GROUP_GIDS,
	GROUP_GID_TYPES,
	GROUP_GID_NDEVS,
	GROUP_PKEYS,
	GROUP_DEVICE
};

struct attr {
	char hca[SUBNET_NAME_BYTES];
	uint32_t port; /* from 1; 0 for GROUP_DEVICE */
	enum attr_group group;
	uint32_t
		index; /* in the group's table; for GIDs, what they are, and P_Keys the table index */
};

/* Writes the text of an attribute, with its newline.  Returns its length, or -ENOENT. */
int port_attr_text(const struct subnet_port *p, enum port_attr attr, char *buf,
		   size_t size) must_check;

/* Does the path name a live attribute?  The path is "sys/class/infiniband/..." without a leading
 * slash, or any other path through the tree to the same file. */
bool attr_parse(const char *path, struct attr *out) must_check;
