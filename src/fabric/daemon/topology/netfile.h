/* SPDX-License-Identifier: BSD-2-Clause */
/* A network file while it is read, with the files that it includes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/daemon/topology/plan.h"

/* Reads single lines of a network file, without regard to the lines before. */

/* "Switch 8 "S1" # "description" lid 1 lmc 0" */
struct node_line {
	enum smp_node_type type;
	uint32_t nports;
	char id[PLAN_NAME_BYTES];
	bool described; /* it has a description, which may be empty */
	char description[PLAN_NAME_BYTES];
	bool enhanced_port0;
	uint32_t lid, lmc;
};

/* "[1](guid) "S1"[3] w=2 # lid 1 lmc 0 "description" lid 7 4xSDR" */
struct port_line {
	uint32_t number, remote_number;
	char remote[PLAN_NAME_BYTES];
	uint64_t guid, remote_guid; /* 0: the line does not say */
	uint32_t lid, lmc;
	uint8_t width, speed, ext_speed; /* 0: the line does not say */
	bool xdr, fdr10;
	bool rated; /* it says how fast the link was, and not only what is enabled */
};

/* "@[1] "alias"" */
struct alias_line {
	uint32_t number;
	char name[PLAN_NAME_BYTES];
};

/* Each returns NULL, or says what is wrong. */
const char *node_line_read(const char *line, struct node_line *out);
const char *port_line_read(const char *line, bool is_switch, struct port_line *out);
const char *alias_line_read(const char *line, struct alias_line *out);
/* Tells whether a line begins a node. */
bool node_line_begins(const char *line);
/*
 * Reads '=' or '+' and a number after a keyword, and a GUID in brackets behind it, which is 0 if
 * there is none.
 */
const char *number_read(const char *at, bool *relative, uint64_t *out, uint64_t *guid);
/* The GUID in an id as ibnetdiscover makes it: "H-0008f10403961354"; 0: it is another id. */
uint64_t id_guid(const char *id, enum smp_node_type type);
/* Reads the next quoted text, and moves *at behind it. */
const char *quoted_read(const char **at, char out[PLAN_NAME_BYTES]);

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
