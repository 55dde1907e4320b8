// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs as people see them (exposure/object.h). */
#include "adapter/qp/qp_row.h"

static const struct object_form qp_form = {{
	[FIGURE_NUMBER] = OBJECT_PLACE(struct qp, qpn),
	[FIGURE_STATE] = OBJECT_PLACE(struct qp, state),
	[FIGURE_PEER] = OBJECT_PLACE(struct qp, attr.dest_qpn),
	[FIGURE_PSN_NEXT] = OBJECT_PLACE(struct qp, req.psn),
	[FIGURE_PSN_ACKED] = OBJECT_PLACE(struct qp, comp.acked_psn),
	[FIGURE_PSN_EXPECTED] = OBJECT_PLACE(struct qp, resp.epsn),
	[FIGURE_SENT] = OBJECT_PLACE(struct qp, req.tail),
	[FIGURE_RETIRED] = OBJECT_PLACE(struct qp, comp.head),
	[FIGURE_SEND_ENTRIES] = OBJECT_PLACE(struct qp, create.sq_blocks),
	[FIGURE_FETCHED] = OBJECT_PLACE(struct qp, req.next_block),
	[FIGURE_TAKEN] = OBJECT_PLACE(struct qp, rq.head),
	[FIGURE_ENTRIES] = OBJECT_PLACE(struct qp, create.rq_wqes),
	[FIGURE_RECORD] = OBJECT_PLACE(struct qp, create.dbrec),
}};

void qp_form_expose(struct wire *wire)
{
	expose_object_form(wire_expose(wire), OBJECT_QP, &qp_form);
}

void qp_list(struct qp *qp)
{
	const struct qp_create_attr *c = &qp->create;

	qp->row = expose_object(
		wire_expose(qp->adapter->wire),
		&(struct object_about){
			.at = (uintptr_t)qp,
			.kind = OBJECT_QP,
			.number = qp->qpn,
			.type = c->type,
			.port = wire_port_row(qp->adapter->wire),
			.pdn = c->pdn,
			.send_cqn = c->send_cq ? cq_number(c->send_cq) : OBJECT_NO_NUMBER,
			.recv_cqn = c->recv_cq ? cq_number(c->recv_cq) : OBJECT_NO_NUMBER,
			.srqn = c->srq ? srq_number(c->srq) : OBJECT_NO_NUMBER,
		});
}
