/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the processes of a fabric reach each other's memory: it reads what each exposes as a peer
 * would read it.
 */
#pragma once

#include "exposure/expose.h"
#include "exposure/look.h"
#include "tool/view.h"

/* ---- the ways between processes ---- */

/* The ways to the keys of a protection domain. */
struct reach_domain {
	uint32_t pdn;
	bool ways[KEY_MAPPED + 1]; /* by enum key_way */
};

/* A process of the fabric. */
struct reach_process {
	uint32_t slot;
	bool exposes; /* whether it exposes keys and responders, as far as we know */
	struct look *look;
	const struct expose_mem
		*mem; /* from the look; NULL: there is nothing, or we may not see it */
	struct reach_domain *domains;
	uint32_t ndomains;
};

#define REACH_QPS (2 * EXPOSE_BLOCKS)

struct reach {
	struct view_segments segments;
	uint32_t n;
	struct reach_process processes[REGISTRY_SLOTS];
};

/* What a queue pair does with RDMA WRITEs and READs. */
struct reach_qp {
	uint32_t qpn;
	uint32_t peer_qpn; /* 0: it has none */
	const char *transport;
	bool one_sided; /* each request goes the way of its key; else all go by packets */
	const char *why;
};

/* False: there is no memory, or the daemon does not hand the slots out. */
bool reach_open(struct view *v, struct reach *r);
void reach_close(struct reach *r);
/* Returns the process in a slot; NULL: we know none. */
const struct reach_process *reach_find(const struct reach *r, uint32_t slot);

/* The same for the queue pair with that number; false: it is in no list. */
bool reach_qp_find(const struct reach *r, const struct reach_process *p, uint32_t qpn,
		   struct reach_qp *out);
/* Gives the row of the port at the other end of a queue pair; false: it is not known. */
bool reach_peer_port(const struct reach_process *p, uint32_t qpn, uint32_t *row);
/* Returns the process that has a queue pair of that number; NULL: we know none. */
const struct reach_process *reach_owner(const struct reach *r, uint32_t qpn);

/* Writes members of an object: queue_pairs and keys. */
void reach_json(struct json *j, const struct reach *r, const struct reach_process *p);
/* Prints the same in one line, counted. */
void reach_print(const struct reach *r, const struct reach_process *p);
