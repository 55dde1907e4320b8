/* SPDX-License-Identifier: BSD-2-Clause */
/* A subnet as it is to be shown: its nodes, and its links that are up, each once. */
#pragma once

#include "tool/view.h"

struct show_node {
	const struct subnet_node *node;
	char name[SUBNET_NAME_BYTES + 1]; /* its description, as infiniband-diags print it */
	uint32_t place;			  /* for show_svg.c: from the left, in its layer */
	uint32_t layer; /* 0: adapters and routers; switches by their distance to those */
};

struct show_link {
	uint32_t a, b;		  /* rows of its ports */
	uint32_t from, to;	  /* indices of their nodes in show.nodes */
	uint64_t bytes[2];	  /* bytes that a and b have sent */
	enum ib_port_state state; /* the lower state of the two ends */
	char rate[32];		  /* "4X NDR" */
};

struct show {
	struct view *view;
	const char *fabric;
	struct show_node *nodes;
	struct show_link *links;
	uint32_t nnodes, nlinks;
	uint32_t switches;
	uint64_t busiest; /* bytes of the busiest link */
};

bool show_is_switch(const struct show_node *n);
const char *show_state_name(enum ib_port_state state);
uint32_t show_lid(const struct show *s, const struct show_node *n);
static inline uint64_t show_bytes(const struct show_link *l)
{
	return l->bytes[0] + l->bytes[1];
}

/* show_dot.c: writes it for graphviz. */
void show_dot(struct show *s, FILE *out);
/* show_svg.c: draws it without help.  False: no memory. */
bool show_svg(struct show *s, FILE *out) must_check;
