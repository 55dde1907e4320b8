/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric as it is to be built: nodes in the order of the file, their ports, and cables.  Readers
 * of files and the generator make a plan; fabric_create builds hosts, subnet and net from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fabric/daemon/topology/names.h"
#include "prm/smp.h"

#define PLAN_NAME_BYTES 65u /* ids and descriptions of ibsim's files, with their NUL */
#define PLAN_NONE	0xffffffffu
#define PLAN_PORTS_MAX	254u

struct plan_port {
	uint32_t cable; /* index of the port at the other end, or PLAN_NONE */
	uint32_t line;	/* line that says so, in its node's file; 0: none */
	uint64_t guid;	/* 0: the node's, plus the port's number if it is no switch */
	uint16_t lid;
	uint8_t lmc;
	uint8_t width, speed, ext_speed; /* enabled, as in PortInfo; 0: as ports start */
	bool xdr, fdr10;
	bool rated; /* the line says how fast the link was */
};

struct plan_node {
	enum smp_node_type type;
	uint8_t nports; /* without port 0 */
	bool enhanced_port0;
	uint32_t first_port; /* of a switch: its port 0 */
	uint32_t file, line;
	uint64_t guid, system_guid;
	uint32_t vendor_id;
	uint16_t device_id;
	char id[PLAN_NAME_BYTES];
	char description[PLAN_NAME_BYTES];
};

struct plan {
	struct plan_node *nodes;
	struct plan_port *ports;
	uint32_t nnodes, nports;
	uint32_t nodes_room, ports_room;
	char **files; /* files that it was read from */
	uint32_t nfiles, files_room;
	struct names ids; /* of the nodes */
	bool like_ibsim;  /* GUIDs and start values of ports follow ibsim */
};

void plan_free(struct plan *p);
/*
 * Adds a node with its ports, without cables.  Returns its index, -EEXIST if its id is there, or
 * -ENOMEM.
 */
int64_t plan_add_node(struct plan *p, const struct plan_node *node) must_check;
/* Returns the index of a node by its id, or -ENOENT. */
int64_t plan_find_id(const struct plan *p, const char *id) must_check;
/* The same by the id, else by the description. */
int64_t plan_find(const struct plan *p, const char *name) must_check;

/* Returns the index of a node's port of that number, or PLAN_NONE. */
uint32_t plan_port_index(const struct plan_node *node, uint32_t number);
/* The GUID of a port of the node; all ports of a switch have that of its port 0. */
uint64_t plan_port_guid(const struct plan *p, const struct plan_node *node, uint32_t port);
/* The node that a port belongs to. */
uint32_t plan_node_of(const struct plan *p, uint32_t port);

/* generate.c: puts all nodes below one switch, or below a fat tree of two or three levels. */
int plan_add_switches(struct plan *p) must_check;

/* Says for people what is wrong with a file: "FILE:LINE: reason". */
#define PLAN_ERROR_BYTES 512u
/* netfile.c: reads ibsim's network files and ibnetdiscover's output, with the files that they
 * include.  0, or a negative errno with a text. */
int plan_read(struct plan *p, const char *path, char error[PLAN_ERROR_BYTES]) must_check;
/* The same from memory, without includes. */
int plan_parse(struct plan *p, const char *name, const char *text, size_t bytes,
	       char error[PLAN_ERROR_BYTES]) must_check;
/* plan.c: checks that both ends agree on each cable, and that GUIDs are unique.  As plan_read. */
int plan_check(const struct plan *p, char error[PLAN_ERROR_BYTES]) must_check;
/* Writes "FILE:LINE: reason" and returns -EINVAL. */
int plan_error(const struct plan *p, uint32_t file, uint32_t line, char error[PLAN_ERROR_BYTES],
	       const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Adds a file of that name and returns its index, or -ENOMEM. */
int64_t plan_add_file(struct plan *p, const char *name) must_check;

/* GUIDs by ibsim's rule: each kind of node counts from its own base, in the order of the file. */

#define GUID_KINDS 4u /* by enum smp_node_type */

struct guid_rule {
	uint64_t next[GUID_KINDS];
	uint64_t base[GUID_KINDS]; /* the last that was given, to which relative ones are added */
	bool given[GUID_KINDS];	   /* next was given, and no node has taken it */
};

void guid_rule_start(struct guid_rule *g);
void guid_rule_set(struct guid_rule *g, enum smp_node_type type, uint64_t guid, bool relative);
/* Returns the GUID of the next node of its type. */
uint64_t guid_rule_take(struct guid_rule *g, enum smp_node_type type, uint32_t nports);
