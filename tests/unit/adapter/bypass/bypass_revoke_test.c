// SPDX-License-Identifier: BSD-2-Clause
/*
 * The target takes back what it laid open, by itself or because of an error, while its peer reaches
 * for it: what counts, what is refused, and when the target's program hears of it.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapter/bypass/bypass_peer.h"
#include "adapter/bypass/remote_memory.h"
#include "adapter/transport/responder.h"
#include "base/hazard.h"
#include "base/rseq.h"
#include "check.h"
#include "exposed_pair.h"

static void pair_modify(struct device_qp *q, uint32_t mask, struct qp_attr attr)
{
	CHECK(!qp_modify(q->qp, &attr, mask));
}

/* Changes the target while a request is under way; says whether the request counts then. */
static bool counts_after(enum key_way way, uint32_t mask, struct qp_attr attr, bool *open)
{
	static const struct message_sizes one = {
		.kind = MESSAGE_WRITE, .messages = 1, .packets = 1, .payload = 8};
	struct exposed_pair *p = exposed_pair_up(way);
	struct qp *from = p->from.qp;
	struct bypass_peer r;
	struct qp_attr seen;
	bool counts;

	hazard_enter();
	CHECK(bypass_peer_enter(from, IB_ACCESS_REMOTE_WRITE, &r) && r.remote);
	qp_query(p->to->qp.qp, &seen);
	CHECK(seen.rq_psn == from->req.psn);
	if (mask)
		pair_modify(&p->to->qp, mask, attr);
	else
		qp_fail(p->to->qp.qp, "test");
	*open = qp_word_is_open(qp_word_load(&exposed_pair_block(p)->word));
	counts = bypass_peer_leave(from, &r, &one);
	qp_query(p->to->qp.qp, &seen);
	CHECK(seen.state == IB_QPS_RESET || seen.rq_psn == psn_add(from->req.psn, counts));
	hazard_leave();
	exposed_pair_down(p);
	return counts;
}

/* What the target's program does while a request is under way: only what stops the responder from
 * taking the request keeps it from counting. */
static void test_under_way(enum key_way way)
{
	const uint32_t access = IB_QP_STATE | IB_QP_ACCESS_FLAGS;
	const struct qp_attr more = {.state = IB_QPS_RTS, .access = DEVICE_ALL_ACCESS},
			     less = {.state = IB_QPS_RTS, .access = IB_ACCESS_REMOTE_WRITE};
	bool open;

	CHECK(counts_after(way, IB_QP_STATE, (struct qp_attr){.state = IB_QPS_RTS}, &open) && open);
	CHECK(counts_after(way, access, more, &open) && open);
	CHECK(counts_after(way, IB_QP_STATE, (struct qp_attr){.state = IB_QPS_SQD}, &open) && open);
	CHECK(counts_after(way, access, less, &open) && open);
	CHECK(counts_after(way, access, (struct qp_attr){.state = IB_QPS_RTS}, &open) && open);
	CHECK(!counts_after(way, IB_QP_STATE, (struct qp_attr){.state = IB_QPS_ERR}, &open) &&
	      !open);
	CHECK(!counts_after(way, IB_QP_STATE, (struct qp_attr){.state = IB_QPS_RESET}, &open) &&
	      !open);
	CHECK(!counts_after(way, 0, (struct qp_attr){.state = IB_QPS_ERR}, &open) && !open);
}

static void stray_arrives(struct exposed_pair *p, int32_t ahead)
{
	struct qp *to = p->to->qp.qp;
	const struct path path = {.src_port = to->path.dst_port, .dst_port = to->path.src_port};
	const struct pkt pkt = {
		.opcode = BTH_RC | BTH_WRITE_ONLY,
		.psn = psn_add(p->from.qp->req.psn, (uint32_t)ahead),
		.npkts = 1,
		.sqpn = qp_number(p->from.qp),
		.dqpn = qp_number(to),
		.pkey = to->pkey,
		.path = &path,
		.ack_req = true,
	};

	responder_receive(to, &pkt);
}

/* A packet that the target does not execute, of an earlier connection say, does not make it execute
 * twice what the peer has under way. */
static void test_stray(enum key_way way)
{
	static const struct message_sizes one = {
		.kind = MESSAGE_WRITE, .messages = 1, .packets = 1, .payload = 8};

	for (int ahead = -2; ahead <= 3; ahead++) {
		struct exposed_pair *p = exposed_pair_up(way);
		struct qp *from = p->from.qp;
		struct bypass_peer r;

		if (ahead == 0) /* it is executed, and the peer hears so */
			goto next;
		hazard_enter();
		CHECK(bypass_peer_enter(from, IB_ACCESS_REMOTE_WRITE, &r) && r.remote);
		stray_arrives(p, ahead);
		stray_arrives(p, ahead);
		CHECK(bypass_peer_leave(from, &r, &one));
		hazard_leave();
		from->req.psn = psn_add(from->req.psn, 1);
		atomic_store(&from->comp.acked_psn, from->req.psn);
		exposed_pair_progress(p);
		exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK(!memcmp(p->to->data, p->source, 100));
	next:
		exposed_pair_down(p);
	}
}

/* The right goes between the look at the responder and the access: nothing is accessed, and packets
 * hear why. */
static void test_right_goes(enum key_way way)
{
	const struct qp_attr less = {.state = IB_QPS_RTS, .access = IB_ACCESS_REMOTE_READ};
	struct exposed_pair *p = exposed_pair_up(way);
	struct run local = {p->source, 64};
	const struct remote_range range = {
		.rkey = p->target_key, .va = (uintptr_t)p->to->data, .len = 64};
	struct remote_move m = {.right = IB_ACCESS_REMOTE_WRITE,
				.ranges = &range,
				.n = 1,
				.local = &local,
				.nlocal = 1,
				.memo = &p->from.qp->req.memo};
	struct bypass_peer r;

	hazard_enter();
	CHECK(bypass_peer_enter(p->from.qp, IB_ACCESS_REMOTE_WRITE, &r) && r.remote);
	pair_modify(&p->to->qp, IB_QP_STATE | IB_QP_ACCESS_FLAGS, less);
	remote_move(&r, &m);
	CHECK(!m.done && !p->to->data[1] && !bypass_peer_leave(p->from.qp, &r, NULL));
	hazard_leave();
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 64);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ_ERR);
	exposed_pair_down(p);
}

/* Without resources for them, READs are refused, whatever the access flags and the key allow. */
static void test_takes_no_reads(enum key_way way)
{
	const struct qp_attr reset = {.state = IB_QPS_RESET};
	struct exposed_pair *p = exposed_pair_up(way);
	const struct cqe64 *cqe;

	pair_modify(&p->from, IB_QP_STATE, reset);
	pair_modify(&p->to->qp, IB_QP_STATE, reset);
	exposed_pair_connect(p, &p->from, &p->to->qp, 1);
	p->takes_reads = 0;
	exposed_pair_connect(p, &p->to->qp, &p->from, 0);
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 64);
	exposed_pair_sent(p, CQE_OP_REQ);
	exposed_pair_post(p, WQE_OP_RDMA_READ, 0, 64);
	exposed_pair_progress(p);
	cqe = device_cq_poll(&p->from.cq);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ_ERR);
	CHECK(((const struct cqe64_err *)(const void *)cqe)->syndrome == CQE_SYN_REM_INVAL_REQ);
	exposed_pair_down(p);
}

/* In error the target takes nothing any more. */
static void test_error(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct qp_attr attr = {.state = IB_QPS_ERR};

	CHECK(!qp_modify(p->to->qp.qp, &attr, IB_QP_STATE));
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 8);
	exposed_pair_progress(p);
	CHECK(!device_cq_poll(&p->from.cq) && !p->to->data[1]);
	exposed_pair_down(p);
}

/* A thread of a peer that keeps a slot of the target, and runs. */
static pid_t slot_keeper(struct exposed_pair *p)
{
	struct access_table *table = &exposed_pair_expose(p)->mem->access;
	struct access *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_Atomic(uint32_t) *claimed = (_Atomic(uint32_t) *)(void *)shared;
	pid_t pid;

	CHECK(shared != MAP_FAILED);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct access a;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		access_fork_child();
		CHECK(access_claim(table, &a));
		atomic_store(claimed, 1);
		for (;;)
			;
	}
	for (int ms = 0; !atomic_load(claimed); ms++) {
		CHECK(ms < 60000);
		usleep(1000);
	}
	munmap(shared, sizeof(*shared));
	return pid;
}

/* The target fails by itself.  Its program hears of that when peers have left its memory; the
 * thread that would tell it does other things meanwhile. */
static void test_error_waits(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	const struct cqe64 *failed = NULL;
	uint64_t never = UINT64_MAX;
	pid_t keeper = slot_keeper(p);

	device_recv(&p->to->qp, p->to->data, sizeof(p->to->data), p->target_key);
	p->target_key++;
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 8);
	for (int i = 0; !failed; i++) {
		CHECK(i < 100000);
		(void)adapter_progress(p->target.device.adapter[0], &never);
		(void)wire_process_progress(p->target.device.host);
		(void)adapter_progress(p->initiator.device.adapter[0], &never);
		(void)wire_process_progress(p->initiator.device.host);
		failed = device_cq_poll(&p->from.cq);
	}
	CHECK(failed->op_own >> 4 == CQE_OP_REQ_ERR);
	(void)adapter_progress(p->target.device.adapter[0], &never);
	CHECK(!device_cq_poll(&p->to->qp.cq));
	CHECK(!kill(keeper, SIGKILL) && waitpid(keeper, NULL, 0) == keeper);
	exposed_pair_progress(p);
	exposed_pair_received(p, CQE_OP_RESP_ERR, 0);
	exposed_pair_down(p);
}

/* The same, and what fails is a request of the target's own: its completion is the news. */
static void test_failed_request_waits(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct device_qp *to = &p->to->qp;
	pid_t keeper = slot_keeper(p);
	const struct cqe64 *failed;
	struct device_wqe w;

	device_wqe_begin(to, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_data(&w, p->to->data, 8, p->target_key + 1);
	device_wqe_end(&w);
	exposed_pair_progress(p);
	CHECK(qp_state(to->qp) == IB_QPS_ERR && !device_cq_poll(&to->cq));
	CHECK(!kill(keeper, SIGKILL) && waitpid(keeper, NULL, 0) == keeper);
	exposed_pair_progress(p);
	failed = device_cq_poll(&to->cq);
	CHECK(failed && failed->op_own >> 4 == CQE_OP_REQ_ERR);
	CHECK(((const struct cqe64_err *)(const void *)failed)->syndrome == CQE_SYN_LOCAL_PROT);
	exposed_pair_down(p);
}

/* What was deregistered, or modified, is found by nobody. */
static void test_key_ends(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct mkey_attr attr;

	CHECK(!mkey_query(p->target.device.adapter[0], p->target_key, &attr));
	attr.access = IB_ACCESS_LOCAL_WRITE;
	CHECK(!mkey_modify(p->target.device.adapter[0], p->mr[1], &attr));
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ_ERR);
	CHECK(!p->to->data[1]);
	exposed_pair_down(p);
}

/* Nobody holds the word that says that the target lives. */
static void test_nobody_alive(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);

	exposed_pair_die(p);
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	CHECK(!device_cq_poll(&p->from.cq) && !p->to->data[1]);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(!memcmp(p->to->data, p->source, 100));
	exposed_pair_live(p);
	exposed_pair_down(p);
}

/* The target's slot has gone to another process, which the initiator has not heard yet, and what it
 * remembers of route and key is still there. */
static void test_other_owner(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct slot *slot = &p->slots[p->target.slot];

	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	exposed_pair_sent(p, CQE_OP_REQ);
	memset(p->to->data, 0, sizeof(p->to->data));
	atomic_fetch_add(&slot->alive, 1);
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	CHECK(!device_cq_poll(&p->from.cq) && !p->to->data[1]);
	atomic_fetch_sub(&slot->alive, 1);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(!memcmp(p->to->data, p->source, 100));
	exposed_pair_down(p);
}

static void test_all(enum key_way way)
{
	test_error(way);
	test_error_waits(way);
	test_failed_request_waits(way);
	test_under_way(way);
	test_stray(way);
	test_right_goes(way);
	test_takes_no_reads(way);
	test_key_ends(way);
	test_nobody_alive(way);
	test_other_owner(way);
}

int main(void)
{
	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	test_all(KEY_MAPPED);
	test_all(KEY_KERNEL);
	return 0;
}
