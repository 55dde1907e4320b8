/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: their record and class. Creation is qp.c, modification qp_attr.c. */
#pragma once

#include "driver/uverbs/objects/cq.h"
#include "driver/uverbs/objects/pd.h"
#include "driver/uverbs/objects/srq.h"

struct uind_table;
struct uxrcd;
struct xrc_target;

struct uqp {
	struct uobj uobj;
	/* NULL where the type has none */
	struct upd *pd;
	struct ucq *send_cq;
	struct ucq *recv_cq;
	struct usrq *srq;
	struct uxrcd *xrcd;
	struct uind_table *ind_table; /* RSS */
	uint32_t groups;	      /* how many multicast groups it is attached to */
	struct xrc_target *target;    /* with it, other handles share qp */
	struct uqp *prev_handle, *next_handle;
	struct qp *qp;
	struct doorbell_user bell;
	enum ib_qp_type type;
	uint32_t max_recv_wr; /* of the ring as it is; query reports it */
	uint32_t max_recv_sge;
	bool sq_sig_all;
	/* Numbers that the program asked for; the library may give more. */
	uint32_t max_send_wr;
	uint32_t max_send_sge;
	uint32_t max_inline;
};

extern const struct uobj_class uqp_class;

/* Counts qp among the users of its parts (1), or takes it out (-1). */
void uqp_count_users(struct uqp *qp, int by);
/* Destroys the device's part, or lets go of the target that it shares. */
void uqp_destroy_device(struct hca *hca, struct uqp *qp);
/* The queue pair's doorbells come through that page of the file, if the file has it.  Call this
 * before the queue pair is published. */
void uqp_bell(struct uqp *qp, struct ufile *f, uint32_t uar_page);
