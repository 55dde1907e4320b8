// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues that change their size, with a consumer that takes the marker as libmlx5 does:
 * it moves what lies in front of the marker one place up into the new ring, and says how far it has
 * consumed only with the next completion.
 */
#include <errno.h>
#include <string.h>

#include "adapter_device.h"
#include "check.h"

#define SMALL 8u
#define LARGE 16u

struct cq_resize_case {
	struct test_device device;
	struct cq *cq;
	struct device_qp q;
	_Alignas(64) struct cqe64 ring[2][LARGE];
	unsigned active;
	uint32_t entries;
	uint32_t cons_index;
	be32 dbrec[2];
	unsigned errors, events;
	uint32_t arm_sn;
	uint16_t posted, polled;
};

static void on_async(void *user, enum ib_event event)
{
	CHECK(event == IB_EVENT_CQ_ERR);
	((struct cq_resize_case *)user)->errors++;
}

static void on_event(void *user)
{
	((struct cq_resize_case *)user)->events++;
}

static void ring_clear(struct cqe64 *ring)
{
	memset(ring, 0, LARGE * sizeof(*ring));
	for (unsigned i = 0; i < LARGE; i++)
		ring[i].op_own = CQE_OP_INVALID << 4;
}

static void cq_resize_case_up(struct cq_resize_case *t)
{
	struct cq_attr attr = {
		.buf = t->ring[0],
		.entries = SMALL,
		.cqe_bytes = CQE_BYTES,
		.dbrec = t->dbrec,
		.async = on_async,
		.event = on_event,
		.user = t,
	};

	memset(t, 0, sizeof(*t));
	ring_clear(t->ring[0]);
	t->entries = SMALL;
	device_up(&t->device);
	CHECK(!cq_create(t->device.adapter[0], &attr, &t->cq));
	device_sender_up(&t->device, &t->q, t->cq);
}

static void cq_resize_case_down(struct cq_resize_case *t)
{
	qp_destroy(t->q.qp);
	CHECK(!cq_destroy(t->cq));
	device_down(&t->device);
}

static void complete_sends(struct cq_resize_case *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct device_wqe w;

		device_wqe_begin(&t->q, &w, WQE_OP_NOP, WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_end(&w);
		t->posted++;
	}
}

static struct cqe64 *entry_of(struct cq_resize_case *t, uint32_t index)
{
	struct cqe64 *cqe = &t->ring[t->active][index & (t->entries - 1)];
	bool owned = (cqe->op_own & 1) == !!(index & t->entries);

	return owned && cqe->op_own >> 4 != CQE_OP_INVALID ? cqe : NULL;
}

/* The completions of so many requests, in order, and no more. */
static void poll_cqes(struct cq_resize_case *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct cqe64 *cqe = entry_of(t, t->cons_index);

		CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ);
		CHECK(be16_get(cqe->wqe_counter) == t->polled++);
		t->cons_index++;
	}
	if (n)
		t->dbrec[DBREC_CQ_CI] = be32_of(t->cons_index & 0xffffff);
}

static void expect_empty(struct cq_resize_case *t)
{
	CHECK(!entry_of(t, t->cons_index) && t->posted == t->polled && !t->errors);
}

static void move_to(struct cq_resize_case *t, struct cqe64 *ring, uint32_t entries)
{
	uint32_t from = t->cons_index, i = from;
	const struct cqe64 *cqe;

	while ((cqe = entry_of(t, i)) && cqe->op_own >> 4 != CQE_OP_RESIZE) {
		struct cqe64 *to = &ring[++i & (entries - 1)];

		CHECK(i - from < t->entries);
		*to = *cqe;
		to->op_own = (uint8_t)((to->op_own & ~1u) | !!(i & entries));
	}
	CHECK(cqe);
	t->cons_index++;
}

static int resize_cq(struct cq_resize_case *t, uint32_t entries)
{
	struct cqe64 *ring = t->ring[!t->active];
	int ret;

	ring_clear(ring);
	ret = cq_resize(t->cq, ring, entries, CQE_BYTES);
	if (!ret) {
		move_to(t, ring, entries);
		t->active = !t->active;
		t->entries = entries;
	}
	return ret;
}

/* However often it is resized without a completion, it has room for what it was made for. */
static void test_no_completion_between(unsigned resizes, unsigned held)
{
	struct cq_resize_case t;

	cq_resize_case_up(&t);
	complete_sends(&t, held);
	for (unsigned i = 0; i < resizes; i++)
		CHECK(!resize_cq(&t, t.entries == SMALL ? LARGE : SMALL));
	complete_sends(&t, t.entries - 1 - held);
	poll_cqes(&t, t.entries - 1);
	expect_empty(&t);
	/* nor do markers of before count when the consumer has spoken */
	complete_sends(&t, t.entries);
	CHECK(!t.errors);
	poll_cqes(&t, t.entries);
	expect_empty(&t);
	cq_resize_case_down(&t);
}

/* What does not fit is refused, and nothing has changed. */
static void test_too_small(void)
{
	struct cq_resize_case t;

	cq_resize_case_up(&t);
	CHECK(!resize_cq(&t, LARGE));
	complete_sends(&t, SMALL);
	CHECK(resize_cq(&t, SMALL) == -EINVAL);
	poll_cqes(&t, 1);
	CHECK(!resize_cq(&t, SMALL));
	poll_cqes(&t, SMALL - 1);
	expect_empty(&t);
	/* a full ring has no place for the marker */
	complete_sends(&t, SMALL);
	CHECK(resize_cq(&t, LARGE) == -EINVAL);
	poll_cqes(&t, SMALL);
	expect_empty(&t);
	cq_resize_case_down(&t);
}

/* Markers make room for themselves and for nothing else. */
static void test_overrun(unsigned resizes)
{
	struct cq_resize_case t;

	cq_resize_case_up(&t);
	for (unsigned i = 0; i < resizes; i++)
		CHECK(!resize_cq(&t, t.entries == SMALL ? LARGE : SMALL));
	complete_sends(&t, t.entries);
	CHECK(!t.errors);
	complete_sends(&t, 1);
	CHECK(t.errors == 1);
	poll_cqes(&t, t.entries);
	cq_resize_case_down(&t);
}

/* As libmlx5 does. */
static void arm_cq(struct cq_resize_case *t, bool solicited)
{
	t->dbrec[DBREC_CQ_ARM] =
		be32_of((t->arm_sn & 3) << 28 | (solicited ? DBREC_CQ_ARM_SOLICITED : 0) |
			(t->cons_index & 0xffffff));
	cq_doorbell(t->cq);
}

static void expect_event(struct cq_resize_case *t)
{
	CHECK(t->events == 1);
	t->events = 0;
	t->arm_sn++;
}

/* A completion that is not consumed is the same after the resize: one that was reported is not
 * reported again. */
static void test_reported_before(void)
{
	struct cq_resize_case t;

	cq_resize_case_up(&t);
	arm_cq(&t, false);
	complete_sends(&t, 1);
	expect_event(&t);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(!resize_cq(&t, t.entries == SMALL ? LARGE : SMALL));
		arm_cq(&t, false);
		CHECK(!t.events);
	}
	complete_sends(&t, 1);
	expect_event(&t);
	poll_cqes(&t, 2);
	cq_resize_case_down(&t);
}

/* A solicited one, as every error is, stays one. */
static void test_solicited_before(void)
{
	const uint8_t no_opcode = 0x3f;
	const struct cqe64 *cqe;
	struct cq_resize_case t;
	struct device_wqe w;

	cq_resize_case_up(&t);
	device_wqe_begin(&t.q, &w, no_opcode, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_end(&w);
	CHECK(!resize_cq(&t, LARGE));
	arm_cq(&t, true);
	expect_event(&t);
	cqe = entry_of(&t, t.cons_index);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ_ERR);
	cq_resize_case_down(&t);
}

int main(void)
{
	test_reported_before();
	test_solicited_before();
	for (unsigned resizes = 0; resizes < 4 * LARGE; resizes += 7) {
		for (unsigned held = 0; held < SMALL; held++)
			test_no_completion_between(resizes, held);
		test_overrun(resizes);
	}
	test_too_small();
	return 0;
}
