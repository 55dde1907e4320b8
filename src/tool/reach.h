/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the processes of a fabric reach each other's memory: it reads what each exposes as a peer
 * would read it.
 */
#pragma once

#include "exposure/expose.h"
#include "tool/view.h"

/* ---- a look at another process ---- */

/*
 * A look at another process: what it exposes, and the figures of its objects (exposure/object.h).
 * That process may be stopped, or mean harm: nothing here waits for it for long, and any number may
 * be in what it says.
 */

/* The figures of an object, as read. */
struct look_object {
	bool known;
	uint64_t figures[FIGURES];
	uint32_t record[2]; /* both words of FIGURE_RECORD */
	bool record_known;
};

/* How far the look got. */
enum look_end {
	LOOK_CLOSED,  /* the process lays nothing open, or it may not be read */
	LOOK_HELD_UP, /* something could not be read in time */
	LOOK_DONE,
};

struct look {
	struct expose_mem mem; /* a copy, */
	bool copied;	       /* whether the copy is complete */
	struct look_object objects[OBJECT_ROWS];
	enum look_end end;
	int error; /* errno that says why no figures can be read; 0: they can */
};

/* Looks at the process in a slot for at most 'milliseconds'; NULL: no memory.  look_free frees the
 * result. */
struct look *look_at(const struct slot *s, int milliseconds);

/* Returns the object in that row; NULL: there is none, or nothing can be said of it. */
const struct object_about *look_about(const struct look *l, uint32_t row);

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

#define REACH_QPS  (2 * EXPOSE_BLOCKS)
#define REACH_KEYS (2 * EXPOSE_BLOCKS)

struct reach {
	struct slot *slots;
	size_t bytes;
	struct registry *registry; /* read-only */
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
/*
 * Gives the PSN that a queue pair expects next, if its peer counts it, too; false: only the queue
 * pair knows.
 */
bool reach_expected_psn(const struct reach_process *p, uint32_t qpn, uint32_t *psn);
/* Gives key i of a process, below REACH_KEYS, with way and reason; false: there is none. */
bool reach_key_at(const struct reach_process *p, uint32_t i, struct key_block *out);
/* Returns the process that has a queue pair of that number; NULL: we know none. */
const struct reach_process *reach_owner(const struct reach *r, uint32_t qpn);

/* Writes members of an object: queue_pairs and keys. */
void reach_json(struct json *j, const struct reach *r, const struct reach_process *p);
/* Prints the same in one line, counted. */
void reach_print(const struct reach *r, const struct reach_process *p);
