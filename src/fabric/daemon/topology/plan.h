/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fabric as it is to be built: nodes in the order of the file, their ports, and cables.  Readers of
 * files and the generator make it; fabric_create builds hosts, subnet and net from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/smp.h"

#define PLAN_NAME_BYTES 65u /* ids and descriptions of ibsim's files, with their NUL */
#define PLAN_NONE	0xffffffffu
#define PLAN_PORTS_MAX	254u

struct plan_port {
	uint32_t cable; /* index of the port at the other end, or PLAN_NONE */
	uint32_t line;	/* that says so, for messages */
	uint16_t lid;
	uint8_t lmc;
	uint8_t width, speed, ext_speed; /* enabled, as in PortInfo */
};

struct plan_node {
	enum smp_node_type type;
	uint8_t nports; /* without port 0 */
	bool enhanced_port0;
	uint32_t first_port; /* of a switch: its port 0 */
	uint32_t line;
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
	bool ethernet;	 /* each host also has an Ethernet device: the fabrics that we invent */
	bool like_ibsim; /* GUIDs and start values of ports are those of ibsim */
};

void plan_free(struct plan *p);
/* Adds a node with its ports, not cabled.  Its index or -ENOMEM. */
int64_t plan_add_node(struct plan *p, const struct plan_node *node) must_check;
/* Index of a node by id, else by description, or -ENOENT. */
int64_t plan_find(const struct plan *p, const char *name) must_check;

/* generate.c: hosts "host1" to "hostN" below one switch, or a fat tree of two or three levels. */
int plan_generate(struct plan *p, uint32_t hosts) must_check;

/* What is wrong with a file, for people: "FILE:LINE: reason". */
#define PLAN_ERROR_BYTES 512u
/* netfile.c: reads ibsim's network files and ibnetdiscover's output, whole and 'include'd.  0 or
 * negative errno with text. */
int plan_read(struct plan *p, const char *path, char error[PLAN_ERROR_BYTES]) must_check;
/* The same from memory, without includes; what fuzzers and plan_read call. */
int plan_parse(struct plan *p, const char *name, const char *text, size_t bytes,
	       char error[PLAN_ERROR_BYTES]) must_check;
/* check.c: cables that both ends agree on, GUIDs that are unique.  As plan_read. */
int plan_check(const struct plan *p, const char *name, char error[PLAN_ERROR_BYTES]) must_check;
