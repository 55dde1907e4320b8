// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA of dynamically connected transport at targets of another process: the first packet of a
 * connection lays open the responder that the target keeps for the initiator, which goes on alone
 * until it turns to another target.
 */
#include <string.h>

#include "adapter/bypass/bypass_peer.h"
#include "adapter/bypass/remote_memory.h"
#include "base/hazard.h"
#include "base/rseq.h"
#include "check.h"
#include "exposed_pair.h"
#include "srq_device.h"
#include "test_subnet.h"
#include "wire/tap.h"

#define LEN	2500u
#define KEY	0x1122334455667788ull
#define TARGETS 2u
#define LID	8u /* of the target's port */

struct dc_far {
	struct exposed_pair *p; /* its own queue pairs are not used */
	struct device_qp dci;
	struct device_srq srq;
	struct qp *dct[TARGETS];
	uint32_t key, lkey;
	struct mkey *data, *source;
};

static void qp_move(struct qp *qp, struct qp_attr *attr, enum ib_qp_state state, uint32_t mask)
{
	attr->state = state;
	CHECK(!qp_modify(qp, attr, IB_QP_STATE | mask));
}

static void dci_ready(struct dc_far *t)
{
	struct qp_attr attr;

	device_attr(&t->p->initiator.device, 0, &t->dci, &attr);
	attr.timeout = 0;
	t->dci.sq_pi = 0;
	memset(t->dci.dbrec, 0, sizeof(t->dci.dbrec));
	qp_move(t->dci.qp, &attr, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT);
	qp_move(t->dci.qp, &attr, IB_QPS_RTR, IB_QP_PATH_MTU);
	qp_move(t->dci.qp, &attr, IB_QPS_RTS,
		IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC |
			IB_QP_SQ_PSN);
}

static void dci_up(struct dc_far *t)
{
	struct qp_create_attr attr;

	t->dci.pdn = pd_alloc(t->p->initiator.device.adapter[0]);
	device_cq_up(&t->p->initiator.device, 0, &t->dci.cq);
	attr = (struct qp_create_attr){
		.type = IB_QPT_DCI,
		.pdn = t->dci.pdn,
		.send_cq = t->dci.cq.cq,
		.sq_buf = t->dci.sq,
		.sq_blocks = DEVICE_BLOCKS,
		.dbrec = t->dci.dbrec,
	};
	CHECK(!qp_create(t->p->initiator.device.adapter[0], &attr, &t->dci.qp));
	dci_ready(t);
}

static void dct_up(struct dc_far *t, unsigned i, uint32_t access)
{
	struct qp_create_attr attr = {
		.type = IB_QPT_DCT,
		.pdn = t->srq.pdn,
		.recv_cq = t->srq.cq.cq,
		.srq = t->srq.srq,
		.dc_key = KEY,
	};
	struct qp_attr to;

	CHECK(!qp_create(t->p->target.device.adapter[0], &attr, &t->dct[i]));
	device_attr(&t->p->target.device, 0, &t->dci, &to);
	to.access = access;
	qp_move(t->dct[i], &to, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	qp_move(t->dct[i], &to, IB_QPS_RTR, IB_QP_AV | IB_QP_PATH_MTU | IB_QP_MIN_RNR_TIMER);
}

static struct dc_far *dc_far_up(enum key_way way, uint32_t access)
{
	struct dc_far *t = aligned_alloc(64, align_up(sizeof(*t), 64));

	CHECK(t);
	memset(t, 0, sizeof(*t));
	t->p = exposed_pair_up(way);
	dci_up(t);
	device_srq_up(&t->p->target.device, 0, &t->srq, 0, 0);
	for (unsigned i = 0; i < TARGETS; i++)
		dct_up(t, i, access);
	t->key = device_mr(&t->p->target.device, 0, t->srq.pdn, t->p->to->data, EXPOSED_PAIR_BYTES,
			   EXPOSED_PAIR_RIGHTS, &t->data);
	exposed_pair_data(t->p, t->data);
	t->lkey = device_mr(&t->p->initiator.device, 0, t->dci.pdn, t->p->source,
			    EXPOSED_PAIR_BYTES, EXPOSED_PAIR_RIGHTS, &t->source);
	return t;
}

static void dct_down(struct dc_far *t, unsigned i)
{
	if (t->dct[i])
		qp_destroy(t->dct[i]);
	t->dct[i] = NULL;
}

static void dc_far_down(struct dc_far *t)
{
	qp_destroy(t->dci.qp);
	for (unsigned i = 0; i < TARGETS; i++)
		dct_down(t, i);
	CHECK(!cq_destroy(t->dci.cq.cq));
	device_srq_down(&t->p->target.device, 0, &t->srq);
	mkey_destroy(t->p->target.device.adapter[0], t->data);
	mkey_destroy(t->p->initiator.device.adapter[0], t->source);
	exposed_pair_down(t->p);
	free(t);
}

static void post_to(struct dc_far *t, uint8_t opcode, uint32_t dctn, uint64_t key)
{
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of(key),
		.dqp_dct = be32_of(dctn | WQE_AV_EXTENDED),
		.rlid = be16_of(LID),
		.hop_limit = 1,
	};
	struct device_wqe w;

	device_wqe_begin(&t->dci, &w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	memcpy(w.bytes + w.at, &av, sizeof(av));
	w.at += sizeof(av);
	device_wqe_raddr(&w, (uintptr_t)t->p->to->data, t->key);
	device_wqe_data(&w, t->p->source, LEN, t->lkey);
	device_wqe_end(&w);
}

static void expect(struct dc_far *t, uint8_t op)
{
	const struct cqe64 *cqe = device_cq_poll(&t->dci.cq);

	CHECK(cqe && cqe->op_own >> 4 == op);
}

static bool target_has(const struct dc_far *t, uint8_t value)
{
	return t->p->to->data[0] == value && !memcmp(t->p->to->data, t->p->to->data + 1, LEN - 1) &&
	       !t->p->to->data[LEN];
}

static void write_to(struct dc_far *t, unsigned dct, uint8_t value, bool packets)
{
	memset(t->p->source, value, LEN);
	post_to(t, WQE_OP_RDMA_WRITE, qp_number(t->dct[dct]), KEY);
	if (packets) {
		CHECK(!target_has(t, value));
		exposed_pair_progress(t->p);
	}
	expect(t, CQE_OP_REQ);
	CHECK(target_has(t, value));
}

static void read_from(struct dc_far *t, unsigned dct, bool packets)
{
	memset(t->p->source, 0, LEN);
	post_to(t, WQE_OP_RDMA_READ, qp_number(t->dct[dct]), KEY);
	if (packets)
		exposed_pair_progress(t->p);
	expect(t, CQE_OP_REQ);
	CHECK(!memcmp(t->p->source, t->p->to->data, LEN));
}

/* Behind the first packet nothing of the target runs, and counters cannot tell. */
static void test_initiator_alone(enum key_way way)
{
	struct dc_far *t = dc_far_up(way, DEVICE_ALL_ACCESS);
	uint64_t alone[EXPOSED_PAIR_COUNTS] = {0}, packets[EXPOSED_PAIR_COUNTS] = {0};
	struct tap tap = {.packet = exposed_pair_ignore};

	write_to(t, 0, 0x11, true);
	exposed_pair_count(t->p, alone);
	write_to(t, 0, 0x12, false);
	read_from(t, 0, false);
	exposed_pair_count(t->p, alone);
	exposed_pair_count(t->p, packets);
	wire_tap_attach(t->p->initiator.device.host, &tap);
	write_to(t, 0, 0x13, true);
	read_from(t, 0, true);
	wire_tap_detach(t->p->initiator.device.host, &tap);
	exposed_pair_count(t->p, packets);
	CHECK(!memcmp(alone, packets, sizeof(alone)) && alone[8] == 1 && alone[9] == 1);
	for (unsigned i = 0; i < 100; i++) {
		write_to(t, 0, (uint8_t)(0x20 + i), false);
		read_from(t, 0, false);
	}
	dc_far_down(t);
}

/* The i-th small request of a list. */
static void put_small(struct dc_far *t, unsigned dct, unsigned i, bool last)
{
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of(KEY),
		.dqp_dct = be32_of(qp_number(t->dct[dct]) | WQE_AV_EXTENDED),
		.rlid = be16_of(LID),
		.hop_limit = 1,
	};
	uint32_t len = 1 + i * 7 % 44;
	struct device_wqe w;

	device_wqe_begin(&t->dci, &w, WQE_OP_RDMA_WRITE, last ? WQE_CTRL_CE_ALWAYS : 0, 0);
	memcpy(w.bytes + w.at, &av, sizeof(av));
	w.at += sizeof(av);
	device_wqe_raddr(&w, (uintptr_t)t->p->to->data + 64 * i, t->key);
	if (i % 3)
		device_wqe_inline(&w, t->p->source + 64 * i, len);
	else
		device_wqe_data(&w, t->p->source + 64 * i, len, t->lkey);
	device_wqe_put(&w);
}

static bool small_arrived(const struct dc_far *t, unsigned i)
{
	const uint8_t *at = t->p->to->data + 64 * i;
	uint32_t len = 1 + i * 7 % 44;

	return !memcmp(at, t->p->source + 64 * i, len) && !at[len];
}

/* Plain requests of one doorbell, in the ring's blocks as they stand there, round and round. */
static void test_lists(enum key_way way)
{
	enum { N = DEVICE_BLOCKS / 2 - 3 };
	struct dc_far *t = dc_far_up(way, DEVICE_ALL_ACCESS);
	uint64_t before;

	write_to(t, 0, 0x11, true);
	before = exposed_pair_counted(&t->p->target, HW_RX_WRITE_REQUESTS);
	for (unsigned i = 0; i < sizeof(t->p->source); i++)
		t->p->source[i] = (uint8_t)(i * 7 + 1);
	for (unsigned round = 0; round < 7; round++) {
		memset(t->p->to->data, 0, sizeof(t->p->to->data));
		for (unsigned i = 0; i < N; i++)
			put_small(t, 0, i, i == N - 1);
		device_ring(&t->dci);
		expect(t, CQE_OP_REQ);
		for (unsigned i = 0; i < N; i++)
			CHECK(small_arrived(t, i));
	}
	CHECK(exposed_pair_counted(&t->p->target, HW_RX_WRITE_REQUESTS) - before == 7 * N);
	dc_far_down(t);
}

/* A list that goes to and fro: what is for another target waits for what is before it. */
static void test_list_turns(enum key_way way)
{
	struct dc_far *t = dc_far_up(way, DEVICE_ALL_ACCESS);

	write_to(t, 0, 0x11, true);
	for (unsigned i = 0; i < sizeof(t->p->source); i++)
		t->p->source[i] = (uint8_t)(i * 7 + 1);
	memset(t->p->to->data, 0, sizeof(t->p->to->data));
	for (unsigned i = 0; i < 12; i++)
		put_small(t, i / 4 % 2, i, i == 11);
	device_ring(&t->dci);
	for (unsigned i = 0; i < 12; i++)
		CHECK(i < 4 ? small_arrived(t, i) : !t->p->to->data[64 * i]);
	for (unsigned i = 0; i < 6; i++)
		exposed_pair_progress(t->p);
	expect(t, CQE_OP_REQ);
	for (unsigned i = 0; i < 12; i++)
		CHECK(small_arrived(t, i));
	dc_far_down(t);
}

/* Each turn to another target is a connection of its own, and so is what follows a reset. */
static void test_turns(enum key_way way)
{
	struct dc_far *t = dc_far_up(way, DEVICE_ALL_ACCESS);
	struct qp_attr attr = {.state = IB_QPS_RESET};

	for (unsigned i = 0; i < 6; i++) {
		write_to(t, i % 2, (uint8_t)(0x30 + 3 * i), true);
		write_to(t, i % 2, (uint8_t)(0x31 + 3 * i), false);
		write_to(t, i % 2, (uint8_t)(0x32 + 3 * i), false);
	}
	CHECK(!qp_modify(t->dci.qp, &attr, IB_QP_STATE));
	dci_ready(t);
	write_to(t, 1, 0x71, true);
	write_to(t, 1, 0x72, false);
	dc_far_down(t);
}

/* After a reset, so that a refusal is the initiator's to hear of. */
static void expect_refusal(struct dc_far *t, uint8_t opcode, uint64_t key)
{
	post_to(t, opcode, qp_number(t->dct[0]), key);
	CHECK(!device_cq_poll(&t->dci.cq));
	exposed_pair_progress(t->p);
	expect(t, CQE_OP_REQ_ERR);
}

/* What was open with the right access key is not with another. */
static void test_access_key(enum key_way way)
{
	struct dc_far *t = dc_far_up(way, DEVICE_ALL_ACCESS);

	write_to(t, 0, 0x11, true);
	write_to(t, 0, 0x12, false);
	memset(t->p->source, 0x13, LEN);
	expect_refusal(t, WQE_OP_RDMA_WRITE, KEY + 1);
	CHECK(target_has(t, 0x12));
	dc_far_down(t);
}

/* The target's rights, and the memory key's, hold as ever; an error ends the connection. */
static void test_rights(enum key_way way)
{
	struct dc_far *t = dc_far_up(way, IB_ACCESS_REMOTE_WRITE);
	struct qp_attr attr = {.state = IB_QPS_RESET};

	write_to(t, 0, 0x11, true);
	write_to(t, 0, 0x12, false);
	expect_refusal(t, WQE_OP_RDMA_READ, KEY);
	CHECK(!qp_modify(t->dci.qp, &attr, IB_QP_STATE));
	dci_ready(t);
	write_to(t, 0, 0x13, true);
	write_to(t, 0, 0x14, false);
	t->key++;
	memset(t->p->source, 0x15, LEN);
	expect_refusal(t, WQE_OP_RDMA_WRITE, KEY);
	t->key--;
	CHECK(target_has(t, 0x14) && !qp_modify(t->dci.qp, &attr, IB_QP_STATE));
	dci_ready(t);
	write_to(t, 0, 0x16, true);
	write_to(t, 0, 0x17, false);
	dc_far_down(t);
}

/* The target ends while a request has found it: nothing is written, and nothing counts. */
static void test_ends_under_way(enum key_way way)
{
	static const struct message_sizes one = {
		.kind = MESSAGE_WRITE, .messages = 1, .packets = 1, .payload = 8, .bth = BTH_DC};
	struct dc_far *t = dc_far_up(way, DEVICE_ALL_ACCESS);
	const struct run from = {t->p->source, 8};
	const struct remote_range at = {t->key, (uintptr_t)t->p->to->data, 8};
	struct key_memo memo = {0};
	struct remote_move m = {.right = IB_ACCESS_REMOTE_WRITE,
				.ranges = &at,
				.n = 1,
				.local = &from,
				.nlocal = 1,
				.memo = &memo};
	struct bypass_peer r;
	const struct qp_block *b;

	write_to(t, 0, 0x11, true);
	hazard_enter();
	CHECK(bypass_peer_enter(t->dci.qp, IB_ACCESS_REMOTE_WRITE, &r) && r.remote);
	b = r.block;
	CHECK(b->qpn == qp_number(t->dct[0]) && b->view.dest_qpn == qp_number(t->dci.qp));
	for (unsigned i = 0; i < 2; i++) {
		remote_move(&r, &m);
		CHECK(m.done == 1);
	}
	hazard_leave();
	dct_down(t, 0);
	CHECK(!b->qpn && !qp_word_is_open(qp_word_load(&b->word)));
	memset(t->p->to->data, 0, 8);
	hazard_enter();
	remote_move(&r, &m);
	CHECK(!m.done && !t->p->to->data[0] && !bypass_peer_leave(t->dci.qp, &r, &one));
	hazard_leave();
	dc_far_down(t);
}

/* Another responder has the place: packets carry everything. */
static void test_place_taken(enum key_way way)
{
	struct dc_far *t = dc_far_up(way, DEVICE_ALL_ACCESS);
	struct expose *e = exposed_pair_expose(t->p);
	struct qp_block *b =
		expose_dc(e, qp_number(t->dct[0]) + EXPOSE_BLOCKS, qp_number(t->dci.qp));

	CHECK(b);
	for (unsigned i = 0; i < 3; i++)
		write_to(t, 0, (uint8_t)(0x11 + i), true);
	expose_qp_end(b);
	dc_far_down(t);
}

static void test_all(enum key_way way)
{
	test_initiator_alone(way);
	test_lists(way);
	test_list_turns(way);
	test_turns(way);
	test_access_key(way);
	test_rights(way);
	test_ends_under_way(way);
	test_place_taken(way);
}

int main(void)
{
	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	test_all(KEY_MAPPED);
	test_all(KEY_KERNEL);
	return 0;
}
