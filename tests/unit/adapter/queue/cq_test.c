// SPDX-License-Identifier: BSD-2-Clause
/* Completion queues of large entries: where the CQE is, and what padding writes in front of it. */
#include <string.h>

#include "adapter_device.h"
#include "check.h"

#define ENTRIES 8u
#define LARGE	(2 * CQE_BYTES)

struct cq_case {
	struct test_device device;
	struct cq *cq;
	struct qp *qp;
	_Alignas(128) uint8_t ring[ENTRIES * LARGE];
	be32 cq_dbrec[2];
	struct device_qp q;
};

static void cq_case_up(struct cq_case *t, bool padded)
{
	struct cq_attr cq = {
		.buf = t->ring,
		.entries = ENTRIES,
		.cqe_bytes = LARGE,
		.dbrec = t->cq_dbrec,
		.padded = padded,
	};

	memset(t, 0, sizeof(*t));
	memset(t->ring, 0xfe, sizeof(t->ring));
	device_up(&t->device);
	CHECK(!cq_create(t->device.adapter[0], &cq, &t->cq));
	device_sender_up(&t->device, &t->q, t->cq);
}

static void cq_case_down(struct cq_case *t)
{
	qp_destroy(t->q.qp);
	CHECK(!cq_destroy(t->cq));
	device_down(&t->device);
}

static bool all_match(const uint8_t *at, uint8_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (at[i] != value)
			return false;
	return true;
}

static void test_padding(bool padded)
{
	const struct cqe64 *cqe;
	struct device_wqe w;
	struct cq_case t;

	cq_case_up(&t, padded);
	for (unsigned i = 0; i < ENTRIES; i++) {
		uint8_t *at = t.ring + (size_t)i * LARGE;

		device_wqe_begin(&t.q, &w, WQE_OP_NOP, WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_end(&w);
		cqe = (const struct cqe64 *)(at + CQE_BYTES);
		CHECK(cqe->op_own == CQE_OP_REQ << 4 && be16_get(cqe->wqe_counter) == i);
		CHECK(all_match(at, padded ? 0 : 0xfe, CQE_BYTES));
		CHECK(all_match(at + LARGE, 0xfe, sizeof(t.ring) - (size_t)(i + 1) * LARGE));
	}
	cq_case_down(&t);
}

int main(void)
{
	test_padding(false);
	test_padding(true);
	return 0;
}
