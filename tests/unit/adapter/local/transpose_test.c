// SPDX-License-Identifier: BSD-2-Clause
/* Matrices that are transposed: where each element goes, and what each kind of refusal looks like. */
#include <string.h>

#include "adapter_device.h"
#include "check.h"

#define BYTES 65536u

struct matrix_case {
	struct test_device device;
	struct device_qp q;
	uint8_t src[BYTES], dst[BYTES];
	struct mkey *ms, *md;
	uint32_t src_key, dst_key;
};

/* As the work request has it; the sides are in their bytes, with what is reserved. */
struct matrix {
	uint8_t element, columns, rows, opmod;
	uint32_t src_len, dst_len, tail;
};

static void raw_ready(struct device_qp *q)
{
	struct qp_attr attr = {.state = IB_QPS_INIT, .port_num = 1};

	CHECK(!qp_modify(q->qp, &attr, IB_QP_STATE | IB_QP_PORT));
	attr.state = IB_QPS_RTR;
	CHECK(!qp_modify(q->qp, &attr, IB_QP_STATE));
	attr.state = IB_QPS_RTS;
	CHECK(!qp_modify(q->qp, &attr, IB_QP_STATE));
}

static void matrix_up(struct matrix_case *t, enum ib_qp_type type)
{
	device_up(&t->device);
	device_qp_up(&t->device, type == IB_QPT_RAW_PACKET, &t->q, type);
	if (type == IB_QPT_RAW_PACKET)
		raw_ready(&t->q);
	else
		device_connect(&t->device, 0, &t->q, &t->q);
	for (uint32_t i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(t->dst, 0xee, BYTES);
	t->src_key = device_mr(&t->device, type == IB_QPT_RAW_PACKET, t->q.pdn, t->src, BYTES, 0,
			       &t->ms);
	t->dst_key = device_mr(&t->device, type == IB_QPT_RAW_PACKET, t->q.pdn, t->dst, BYTES,
			       IB_ACCESS_LOCAL_WRITE, &t->md);
}

static void matrix_down(struct matrix_case *t, enum ib_qp_type type)
{
	struct adapter *a = t->device.adapter[type == IB_QPT_RAW_PACKET];

	device_qp_down(&t->q);
	mkey_destroy(a, t->ms);
	mkey_destroy(a, t->md);
	device_down(&t->device);
}

static struct matrix matrix_of(uint8_t element, uint8_t columns, uint8_t rows)
{
	uint32_t bytes = (uint32_t)element * (columns & 0x7f) * (rows & 0x7f);

	return (struct matrix){element, columns, rows, WQE_OPMOD_MMO_TRANSPOSE, bytes, bytes, 0};
}

static const struct cqe64 *matrix_post(struct matrix_case *t, const struct matrix *m)
{
	struct wqe_transpose shape = {
		.element_bytes = m->element, .columns = m->columns, .rows = m->rows};
	struct device_wqe w;

	device_wqe_begin(&t->q, &w, WQE_OP_LOCAL_MMO, WQE_CTRL_CE_ALWAYS, 0);
	w.bytes[0] = m->opmod;
	memcpy(w.bytes + w.at, &shape, sizeof(shape));
	w.at += sizeof(shape);
	device_wqe_data(&w, t->src, m->src_len, t->src_key);
	device_wqe_data(&w, t->dst, m->dst_len, t->dst_key);
	w.at += m->tail;
	device_wqe_end(&w);
	return device_cq_poll(&t->q.cq);
}

static void matrix_check(struct matrix_case *t, uint8_t element, uint8_t columns, uint8_t rows)
{
	const struct matrix m = matrix_of(element, columns, rows);
	const struct cqe64 *cqe;

	memset(t->dst, 0xee, BYTES);
	cqe = matrix_post(t, &m);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ);
	CHECK(be32_get(cqe->sop_drop_qpn) >> 24 == WQE_OP_LOCAL_MMO);
	columns &= 0x7f;
	rows &= 0x7f;
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t c = 0; c < columns; c++)
			CHECK(!memcmp(t->dst + (c * rows + r) * element,
				      t->src + (r * columns + c) * element, element));
	CHECK(t->dst[m.dst_len] == 0xee);
}

static void test_shapes(enum ib_qp_type type)
{
	static struct matrix_case t;

	matrix_up(&t, type);
	matrix_check(&t, 1, 1, 1);
	matrix_check(&t, 1, 127, 127);
	matrix_check(&t, 8, 8, 8);
	matrix_check(&t, 4, 3, 100);
	matrix_check(&t, 255, 16, 16);
	matrix_check(&t, 3, 127, 1);
	/* the eighth bit of a side is reserved */
	matrix_check(&t, 2, 0x85, 7);
	matrix_down(&t, type);
}

/* One of these per queue pair: a refusal is the end of it. */
static void test_refusals(void)
{
	static struct matrix_case t;

	for (unsigned which = 0; which < 9; which++) {
		uint8_t syndrome = which < 7 ? CQE_SYN_LOCAL_QP_OP : CQE_SYN_LOCAL_PROT;
		enum ib_qp_type type = which == 6 ? IB_QPT_UD : IB_QPT_RC;
		struct matrix m = matrix_of(4, 5, 6);
		const struct cqe64_err *cqe;

		matrix_up(&t, type);
		switch (which) {
		case 0:
			m.element = 0;
			break;
		case 1:
			m.columns = 0x80;
			break;
		case 2:
			m.src_len++;
			break;
		case 3:
			m.dst_len--;
			break;
		case 4:
			m.tail = WQE_UNIT;
			break;
		case 5:
			m.opmod = 2;
			break;
		case 7: /* rights of the destination */
			t.dst_key = t.src_key;
			break;
		case 8:
			t.src_key ^= 0x100;
			break;
		default: /* a transport that has not got it */
			break;
		}
		cqe = (const struct cqe64_err *)matrix_post(&t, &m);
		CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ_ERR);
		CHECK_SAY(cqe->syndrome == syndrome, "%u: 0x%x", which, cqe->syndrome);
		CHECK(t.dst[0] == 0xee);
		matrix_down(&t, type);
	}
}

int main(void)
{
	test_shapes(IB_QPT_RC);
	test_shapes(IB_QPT_RAW_PACKET);
	test_refusals();
	return 0;
}
