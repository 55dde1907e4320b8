/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk through the kinds of objects and through data transfers, each step of which may be
 * refused: what was made is used and taken down again, what was not is left out.
 */
#pragma once

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define WALK_PAGE	4096u
#define WALK_BYTES	(1u << 20)
#define WALK_PATIENCE_S 90 /* no answer in this time is none at all */
#define WALK_COMPS	2

/* What a step returns, beside 0 and the errno of a refusal. */
enum walk_result {
	WALK_SKIP = -1, /* what it needs is not there */
	WALK_HUNG = -2,
	WALK_WRONG = -3, /* has been said on standard error */
};

struct walk_end {
	struct ibv_qp *qp;
	bool ready; /* RTS */
};

/* What the other side must know. */
struct walk_address {
	uint32_t qpn, rkey;
	uint64_t addr;
	uint16_t lid;
	union ibv_gid gid;
};

struct walk {
	const char *device;
	bool faulty;  /* some calls fail in this round */
	bool lasting; /* and go on failing */
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	union ibv_gid gid;
	bool have_port;
	uint8_t *memory; /* WALK_BYTES, of pages of its own */

	struct ibv_pd *pd, *parent;
	struct ibv_td *td;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[WALK_COMPS]; /* the first one with the channel */
	struct ibv_cq_ex *cq_ex;
	struct ibv_mr *mr, *local, *null, *dm_mr;
	struct ibv_dm *dm;
	struct ibv_mw *mw[2];
	struct ibv_srq *srq, *xrc_srq;
	struct ibv_xrcd *xrcd;
	struct ibv_ah *ah;
	struct walk_end rc[2], uc[2], ud[2], xrc_send, xrc_recv, on_srq, dci, dct, raw;
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *rss;
	struct ibv_counters *counters;
	struct ibv_flow *flow, *dv_flow;
	struct mlx5dv_flow_matcher *matcher;
	struct mlx5dv_mkey *mkey, *sig_mkey;
	bool attached;

	uint32_t eqn;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_umem *umem[3]; /* CQ, rings, records */
	struct mlx5dv_devx_obj *devx_cq, *devx_qp;
	uint32_t pdn, devx_cqn, devx_qpn;
	struct mlx5dv_devx_event_channel *events;
	struct mlx5dv_devx_cmd_comp *answers;
	uint8_t *rings; /* three pages */

	int umad, issm; /* or -1 */
	bool agents;	/* are registered */

	struct walk_end remote; /* connected with the other process */
	int peer;		/* socket to it */
	bool peer_may_fail;
	struct walk_address remote_peer;
};

struct walk_step {
	const char *name;
	int (*make)(struct walk *w);
	int (*drop)(struct walk *w); /* or NULL */
};

/* The result of a step that makes an object by an expression, if what it needs is there. */
#define WALK_MAKE(object, needed, how) \
	(!(needed) ? WALK_SKIP : (errno = 0, (object) = (how)) ? 0 : walk_errno())
/* Returns from a step that takes an object down; what was not made needs none. */
#define WALK_DROP(object, how)       \
	do {                         \
		int drop_ = 0;       \
                                     \
		if (object)          \
			drop_ = how; \
		(object) = NULL;     \
		return drop_;        \
	} while (0)
#define WALK_STEP(name) static int name(struct walk *w)
/* The row of a step that makes something. */
#define WALK_BOTH(what) #what, what##_make, what##_drop

/* Tables end with a name that is NULL. */
extern const struct walk_step walk_verbs[], walk_qps[], walk_mlx5[], walk_devx[], walk_data[],
	walk_remote[], walk_mads[];

/* 0, or the errno that the library left; never 0 for a refusal. */
int walk_errno(void);
struct walk_address walk_address(const struct walk *w, const struct ibv_qp *qp);
struct ibv_ah_attr walk_ah_attr(const struct walk *w, const struct walk_address *peer);
/* RESET to INIT, to RTR, to RTS; the peer may be the queue pair itself. */
int walk_connect(const struct walk *w, struct walk_end *e, const struct walk_address *peer);
/* Waits for n completions.  In a round without faults all must be good. */
int walk_completions(const struct walk *w, struct ibv_cq *cq, unsigned n);
/* More data on the connection with the other process. */
int walk_remote_again(struct walk *w);
/* The process at the other end; does not return. */
_Noreturn void walk_peer(const char *device, int sock);
