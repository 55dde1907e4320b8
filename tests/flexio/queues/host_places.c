// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rings, doorbell records and UARs that a card would not take as they stand: the queue is made, and
 * the log names it once.  Rights that there are not.
 */
#include "../../support/captured.h"
#include "host.h"

#define ROOM 65536u

struct places {
	struct ibv_context *ctx;
	struct flexio_process *p, *other;
	struct flexio_cq *cq;
	uint32_t cqn, uar;
	uint64_t memory;
};

/* Makes a queue with its ring and its record that far from where they should lie. */
typedef void places_make(struct places *l, unsigned ring, unsigned record);

static struct flexio_qmem place_of(const struct places *l, unsigned at)
{
	return (struct flexio_qmem){.daddr = l->memory + at};
}

static void make_cq(struct places *l, unsigned ring, unsigned record)
{
	struct flexio_cq_attr attr = {
		.log_cq_depth = 4,
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ,
		.uar_id = l->uar,
		.cq_dbr_daddr = l->memory + 4096 + record,
		.cq_ring_qmem = place_of(l, ring),
	};
	struct flexio_cq *cq;

	OK(flexio_cq_create(l->p, NULL, &attr, &cq));
	OK(flexio_cq_destroy(cq));
}

static struct flexio_wq_attr wq_attr(const struct places *l, unsigned ring, unsigned record)
{
	return (struct flexio_wq_attr){
		.log_wq_depth = 4,
		.uar_id = l->uar,
		.wq_ring_qmem = place_of(l, 8192 + ring),
		.wq_dbr_qmem = place_of(l, 16384 + record),
	};
}

static void make_rq(struct places *l, unsigned ring, unsigned record)
{
	struct flexio_wq_attr attr = wq_attr(l, ring, record);
	struct flexio_rq *rq;

	OK(flexio_rq_create(l->p, NULL, l->cqn, &attr, &rq));
	OK(flexio_rq_destroy(rq));
}

static void make_sq(struct places *l, unsigned ring, unsigned record)
{
	struct flexio_wq_attr attr = wq_attr(l, ring, record);
	struct flexio_sq *sq;

	OK(flexio_sq_create(l->p, NULL, l->cqn, &attr, &sq));
	OK(flexio_sq_destroy(sq));
}

static struct flexio_qp_attr qp_attr(const struct places *l, unsigned ring, unsigned record)
{
	return (struct flexio_qp_attr){
		.uar_id = l->uar,
		.log_sq_depth = 4,
		.log_rq_depth = 4,
		.sq_cqn = l->cqn,
		.rq_cqn = l->cqn,
		.qp_wq_buff_qmem = place_of(l, 8192 + ring),
		.qp_wq_dbr_qmem = place_of(l, 16384 + record),
	};
}

static void make_qp(struct places *l, unsigned ring, unsigned record)
{
	struct flexio_qp_attr attr = qp_attr(l, ring, record);
	struct flexio_qp *qp;

	OK(flexio_qp_create(l->p, NULL, &attr, &qp));
	OK(flexio_qp_destroy(qp));
}

static void expect_lines(places_make *make, struct places *l, unsigned ring, unsigned record,
			 const char *line)
{
	const char *text;

	capture_begin();
	make(l, ring, record);
	text = capture_end();
	CHECK_SAY(captured_count(text, "flexio: error") == (line != NULL) &&
			  (!line || captured_count(text, line) == 1),
		  "ring + %u, record + %u: %s", ring, record, text);
}

static void expect_places(places_make *make, struct places *l)
{
	const uint32_t uar = l->uar;

	expect_lines(make, l, 0, 0, NULL);
	expect_lines(make, l, 64, 8, NULL);
	expect_lines(make, l, 4, 0, "is no multiple of 64");
	expect_lines(make, l, 32, 0, "is no multiple of 64");
	expect_lines(make, l, 0, 4, "is no multiple of 8");
	/* receives have no bell */
	l->uar = flexio_uar_get_id(flexio_process_get_uar(l->other));
	expect_lines(make, l, 0, 0, make == make_rq ? NULL : "is another process's");
	l->uar = uar;
}

static void expect_rights(struct places *l)
{
	struct flexio_qp_attr attr = qp_attr(l, 0, 0);
	struct flexio_qp *qp;

	attr.qp_access_mask = 1 << 30;
	FAILS(flexio_qp_create(l->p, NULL, &attr, &qp));
	CHECK(!qp);
	attr.qp_access_mask = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	OK(flexio_qp_create(l->p, NULL, &attr, &qp));
	attr.next_state = FLEXIO_QP_STATE_INIT;
	attr.vhca_port_num = 1;
	attr.qp_access_mask |= IBV_ACCESS_MW_BIND;
	FAILS(flexio_qp_modify(qp, &attr, NULL));
	CHECK(flexio_qp_state_get(qp) == FLEXIO_QP_STATE_RST);
	attr.qp_access_mask = IBV_ACCESS_REMOTE_READ;
	OK(flexio_qp_modify(qp, &attr, NULL));
	OK(flexio_qp_destroy(qp));
}

static void places(void)
{
	struct places l = {.ctx = device_open(1)};
	struct flexio_cq_attr attr = {.log_cq_depth = 4,
				      .element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ};

	OK(flexio_process_create(l.ctx, queues_app, NULL, &l.p));
	OK(flexio_process_create(l.ctx, queues_app, NULL, &l.other));
	OK(flexio_buf_dev_alloc(l.p, ROOM, &l.memory));
	CHECK(l.memory % 64 == 0);
	l.uar = attr.uar_id = flexio_uar_get_id(flexio_process_get_uar(l.p));
	attr.cq_ring_qmem = place_of(&l, 32768);
	attr.cq_dbr_daddr = l.memory + 49152;
	OK(flexio_cq_create(l.p, NULL, &attr, &l.cq));
	l.cqn = flexio_cq_get_cq_num(l.cq);
	expect_places(make_cq, &l);
	expect_places(make_rq, &l);
	expect_places(make_sq, &l);
	expect_places(make_qp, &l);
	expect_rights(&l);
	OK(flexio_cq_destroy(l.cq));
	OK(flexio_process_destroy(l.p));
	OK(flexio_process_destroy(l.other));
	CHECK(!ibv_close_device(l.ctx));
}

const struct host_case place_cases[] = {{"places", places}, {0}};
