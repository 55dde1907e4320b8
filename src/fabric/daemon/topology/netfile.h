/* SPDX-License-Identifier: BSD-2-Clause */
/* A network file while it is read, with the files that it includes. */
#pragma once

#include "fabric/daemon/topology/guid.h"
#include "fabric/daemon/topology/plan.h"

#define NETFILE_PREFIX_BYTES 21u

/* Where a port leads to, kept until all nodes are known. */
struct netfile_remote {
	char id[PLAN_NAME_BYTES];
	uint8_t number;
	uint64_t guid; /* of the port at the other end, as this end's line says; 0: it does not */
};

struct netfile_alias {
	char name[PLAN_NAME_BYTES];
	uint32_t port;
};

struct netfile {
	struct plan *plan;
	char *error; /* has PLAN_ERROR_BYTES */
	/* Reads another file that a line of ours names; NULL: no file can be included. */
	int (*include)(struct netfile *n, const char *name);
	uint32_t depth;
	uint32_t file, line;

	char prefix[NETFILE_PREFIX_BYTES]; /* goes in front of ids without one */
	struct guid_rule guids;
	/* Of the next node: */
	bool system_guid_given;
	uint64_t system_guid;
	uint64_t switch_port_guid; /* 0: its own GUID */
	uint32_t vendor_id, device_id;
	uint8_t width, speed, ext_speed; /* for ports that say nothing; 0: the start values */

	int64_t node;			/* node that the lines are about; -1: none */
	uint32_t strange_line;		/* the last one that means nothing, if no node was since */
	struct netfile_remote *remotes; /* one for each port of the plan */
	uint32_t remotes_room;
	struct netfile_alias *aliases;
	uint32_t naliases;
};

void netfile_open(struct netfile *n, struct plan *plan, char error[PLAN_ERROR_BYTES]);
void netfile_close(struct netfile *n);
/* Reads the lines of a file, and changes 'text'.  An included file is read in between. */
int netfile_lines(struct netfile *n, const char *name, char *text, size_t bytes) must_check;
/* Connects the ports that lead to each other, when all is read. */
int netfile_connect(struct netfile *n) must_check;
