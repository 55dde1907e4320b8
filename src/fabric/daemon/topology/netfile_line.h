/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads single lines of a network file, without regard to the lines before. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/daemon/topology/plan.h"

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
