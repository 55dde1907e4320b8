// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs of SENDs that are alike, from one process to another, and what may happen in the middle of a run: receives
 * that cannot take their message, or are not there; a shared receive queue, with a limit; a completion queue that
 * is armed, or overruns.  A plain model says what completes.
 *
 *     side 0, tx --- channel --- rx, side 1
 *
 * send_runs_test [SEEDS]
 */
#include <stdlib.h>
#include <string.h>

#include "adapter/qp/qp.h"
#include "base/hazard.h"
#include "signed_pair.h"
#include "test_fault.h"

#define WQES	 32u /* of either receive queue */
#define WQE	 64u
#define SLOT	 128u
#define MESSAGES 400u

enum receive_kind {
	RECEIVE_GOOD,
	RECEIVE_SPLIT, /* two entries */
	RECEIVE_SHORT,
	RECEIVE_NO_KEY,
	RECEIVE_FOREIGN, /* the key is of another protection domain */
	RECEIVE_GONE,	 /* the memory is unmapped */
	RECEIVE_KINDS,
};

struct message {
	uint32_t len, imm;
	bool has_imm, signaled;
	uint8_t bytes[SLOT];
};

static struct signed_pair pair;
static struct device_qp tx, rx;
static struct srq *srq;
static struct device_cq recv_cq;
static be32 srq_dbrec;
static _Alignas(64) uint8_t srq_ring[WQES * WQE];
static uint8_t *rx_memory, *gone;
static struct mkey *rx_key, *gone_key, *foreign_key;
static uint32_t limit_events, error_events;

static enum receive_kind receives[MESSAGES];
static struct message sent[MESSAGES];
static unsigned nsent, nposted, ncompleted, nsend_completed;

static void srq_event(void *user, enum ib_event event)
{
	(void)user;
	CHECK(event == IB_EVENT_SRQ_LIMIT_REACHED || event == IB_EVENT_SRQ_ERR);
	if (event == IB_EVENT_SRQ_ERR)
		error_events++;
	else
		limit_events++;
}

static void rx_event(void *user, enum ib_event event)
{
	((struct device_qp *)user)->async[event]++;
}

static void srq_up(void)
{
	struct srq_attr attr = {
		.pdn = rx.pdn,
		.buf = srq_ring,
		.wqe_count = WQES,
		.wqe_bytes = WQE,
		.max_sge = 3,
		.dbrec = &srq_dbrec,
		.async = srq_event,
	};

	srq_dbrec = be32_of(0);
	for (unsigned i = 0; i < WQES; i++) {
		struct wqe_srq_next next = {.next_wqe_index = be16_of((uint16_t)((i + 1) % WQES))};

		memcpy(srq_ring + (size_t)i * WQE, &next, sizeof(next));
	}
	CHECK(!srq_create(pair.device.adapter[1], &attr, &srq));
}

static void rx_up(enum ib_qp_type type, bool shared)
{
	struct qp_create_attr attr;

	memset(&rx, 0, sizeof(rx));
	rx.type = type;
	rx.adapter = pair.device.adapter[1];
	rx.pdn = pd_alloc(rx.adapter);
	srq = NULL;
	if (shared)
		srq_up();
	device_cq_up(&pair.device, 1, &rx.cq);
	device_cq_up(&pair.device, 1, &recv_cq);
	attr = (struct qp_create_attr){
		.type = type,
		.pdn = rx.pdn,
		.send_cq = rx.cq.cq,
		.recv_cq = recv_cq.cq,
		.srq = srq,
		.sq_buf = rx.sq,
		.sq_blocks = DEVICE_BLOCKS,
		.rq_buf = shared ? NULL : rx.rq,
		.rq_wqes = shared ? 0 : WQES,
		.rq_wqe_bytes = shared ? 0 : WQE,
		.dbrec = rx.dbrec,
		.async = rx_event,
		.user = &rx,
	};
	CHECK(!qp_create(rx.adapter, &attr, &rx.qp));
}

static void qp_ready(struct device_qp *q, struct device_qp *to, uint16_t dlid)
{
	struct qp_attr attr;

	device_attr(&pair.device, 0, to, &attr);
	attr.ah = (struct ib_ah){.dlid = dlid, .port_num = 1};
	attr.rnr_retry = 7;
	attr.retry_cnt = 7;
	device_qp_ready(q, &attr);
}

static void lane_up(enum ib_qp_type type, bool shared, bool exposed)
{
	if (exposed)
		signed_pair_up_exposed(&pair);
	else
		signed_pair_up(&pair, true);
	device_qp_up(&pair.device, 0, &tx, type);
	rx_up(type, shared);
	qp_ready(&tx, &rx, 9);
	qp_ready(&rx, &tx, 7);
	rx_memory = pair.side[1].memory;
	gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(gone != MAP_FAILED);
	(void)device_mr(&pair.device, 1, rx.pdn, rx_memory, SIGNED_PAIR_BYTES, DEVICE_ALL_ACCESS,
			&rx_key);
	(void)device_mr(&pair.device, 1, rx.pdn, gone, 4096, DEVICE_ALL_ACCESS, &gone_key);
	(void)device_mr(&pair.device, 1, rx.pdn + 77, rx_memory, SIGNED_PAIR_BYTES,
			DEVICE_ALL_ACCESS, &foreign_key);
	CHECK(!mprotect(gone, 4096, PROT_NONE));
	memset(rx_memory, 0xee, MESSAGES * SLOT);
	nsent = nposted = ncompleted = nsend_completed = limit_events = 0;
	signed_pair_progress(&pair);
	signed_pair_progress(&pair);
}

static void lane_down(void)
{
	device_qp_down(&tx);
	qp_destroy(rx.qp);
	CHECK(!cq_destroy(rx.cq.cq) && !cq_destroy(recv_cq.cq));
	if (srq)
		CHECK(!srq_destroy(srq));
	mkey_destroy(rx.adapter, rx_key);
	mkey_destroy(rx.adapter, gone_key);
	mkey_destroy(rx.adapter, foreign_key);
	CHECK(!munmap(gone, 4096));
	signed_pair_down(&pair);
}

/* ---- what is posted ---- */

static void post_receive(enum receive_kind kind)
{
	uint8_t *at = rx_memory + (size_t)nposted * SLOT;
	uint32_t key = mkey_key(rx_key);
	struct wqe_data d[3] = {{be32_of(SLOT), be32_of(key), be64_of((uintptr_t)at)},
				{.lkey = be32_of(WQE_DATA_LKEY_END)},
				{.lkey = be32_of(WQE_DATA_LKEY_END)}};
	uint8_t *wqe;

	switch (kind) {
	case RECEIVE_SPLIT:
		d[0].byte_count = be32_of(3);
		d[1] = (struct wqe_data){be32_of(SLOT - 3), be32_of(key),
					 be64_of((uintptr_t)at + 3)};
		break;
	case RECEIVE_SHORT:
		d[0].byte_count = be32_of(4);
		break;
	case RECEIVE_NO_KEY:
		d[0].lkey = be32_of(key ^ 0x100);
		break;
	case RECEIVE_FOREIGN:
		d[0].lkey = be32_of(mkey_key(foreign_key));
		break;
	case RECEIVE_GONE:
		d[0].lkey = be32_of(mkey_key(gone_key));
		d[0].addr = be64_of((uintptr_t)gone);
		break;
	default:
		break;
	}
	CHECK(nposted < MESSAGES);
	receives[nposted] = kind;
	wqe = srq ? srq_ring + (size_t)(nposted % WQES) * WQE + sizeof(struct wqe_srq_next)
		  : rx.rq + (size_t)(nposted % WQES) * WQE;
	memcpy(wqe, d, sizeof(d));
	nposted++;
	__atomic_store_n(srq ? &srq_dbrec.raw : &rx.dbrec[DBREC_RECV].raw,
			 be32_of(nposted & 0xffff).raw, __ATOMIC_RELEASE);
}

static void put_message(struct message *m, uint8_t flags)
{
	struct device_wqe w;

	device_wqe_begin(&tx, &w, m->has_imm ? WQE_OP_SEND_IMM : WQE_OP_SEND,
			 flags | (m->signaled ? WQE_CTRL_CE_ALWAYS : 0), m->imm);
	device_wqe_inline(&w, m->bytes, m->len);
	device_wqe_put(&w);
}

static void send_run(struct rng *rng, unsigned n, uint32_t len)
{
	bool has_imm = !rng_below(rng, 4);
	uint32_t imm = (uint32_t)rng_next(rng);

	while (n-- && nsent < MESSAGES) {
		struct message *m = &sent[nsent++];

		*m = (struct message){.len = len, .imm = imm, .has_imm = has_imm, .signaled = !n};
		for (unsigned i = 0; i < len; i++)
			m->bytes[i] = (uint8_t)rng_next(rng);
		put_message(m, 0);
	}
	device_ring(&tx);
}

/* ---- what completes ---- */

static uint8_t receive_error(unsigned n)
{
	uint32_t len = sent[n].len;

	switch (receives[n]) {
	case RECEIVE_SHORT:
		return len > 4 ? CQE_SYN_LOCAL_LENGTH : 0;
	case RECEIVE_NO_KEY:
	case RECEIVE_FOREIGN:
	case RECEIVE_GONE:
		return CQE_SYN_LOCAL_PROT;
	default:
		return 0;
	}
}

/* The first message that its receive does not take, of those that were sent; MESSAGES: none. */
static unsigned first_bad(void)
{
	for (unsigned n = 0; n < nsent && n < nposted; n++)
		if (receive_error(n))
			return n;
	return MESSAGES;
}

static uint8_t error_of(const struct cqe64 *c)
{
	return ((const struct cqe64_err *)c)->syndrome;
}

static void check_receive(const struct cqe64 *c)
{
	unsigned n = ncompleted++, bad = first_bad();
	const struct message *m = &sent[n];

	CHECK(n < nposted && be16_get(c->wqe_counter) == (srq ? n % WQES : n));
	if (n >= bad) {
		CHECK(cqe_op(c) == CQE_OP_RESP_ERR);
		CHECK(error_of(c) == (n == bad ? receive_error(n) : CQE_SYN_WR_FLUSH));
		CHECK(n == bad || !srq);
		return;
	}
	CHECK(n < nsent && cqe_op(c) == (m->has_imm ? CQE_OP_RESP_SEND_IMM : CQE_OP_RESP_SEND));
	CHECK(be32_get(c->byte_cnt) == m->len &&
	      (!m->has_imm || be32_get(c->imm_inval_pkey) == m->imm));
	CHECK(!memcmp(rx_memory + (size_t)n * SLOT, m->bytes, m->len));
	CHECK(rx_memory[(size_t)n * SLOT + m->len] == 0xee);
}

static void check_send(const struct cqe64 *c)
{
	unsigned bad = tx.type == IB_QPT_RC ? first_bad() : MESSAGES;

	if (cqe_op(c) == CQE_OP_REQ) {
		while (!sent[nsend_completed].signaled)
			nsend_completed++;
		CHECK(nsend_completed < bad && nsend_completed < nsent);
	} else {
		CHECK(cqe_op(c) == CQE_OP_REQ_ERR);
		if (nsend_completed < bad)
			nsend_completed = bad;
		CHECK(error_of(c) == (nsend_completed > bad ? CQE_SYN_WR_FLUSH
				      : receive_error(bad) == CQE_SYN_LOCAL_LENGTH
					      ? CQE_SYN_REM_INVAL_REQ
					      : CQE_SYN_REM_OP));
	}
	nsend_completed++;
}

static void look(unsigned side)
{
	(void)adapter_progress(pair.device.adapter[side], NULL);
	(void)wire_process_progress(pair.process[side].host);
}

static void collect(void)
{
	const struct cqe64 *c;

	while ((c = device_cq_poll(&recv_cq)))
		check_receive(c);
	while ((c = device_cq_poll(&tx.cq)))
		check_send(c);
}

static bool run_is_over(void)
{
	unsigned bad = first_bad();

	if (bad == MESSAGES)
		return ncompleted == nsent && nsend_completed == nsent;
	return ncompleted == (srq ? bad + 1 : nposted) &&
	       (tx.type != IB_QPT_RC || nsend_completed == nsent);
}

static enum receive_kind any_receive(struct rng *rng)
{
	if (rng_below(rng, 60))
		return rng_below(rng, 8) ? RECEIVE_GOOD : RECEIVE_SPLIT;
	return (enum receive_kind)rng_below(rng, RECEIVE_KINDS);
}

/* Fewer receives than messages at times, never in the end. */
static void random_runs(uint64_t seed, enum ib_qp_type type, bool shared, bool exposed)
{
	static const uint32_t lens[] = {1, 4, 8, 8, 8, 12, 24, 63, 64, 65};
	struct rng rng = {seed};
	time_t end = time(NULL) + 20;

	lane_up(type, shared, exposed);
	while (type != IB_QPT_RC && nposted < WQES)
		post_receive(any_receive(&rng));
	for (unsigned step = 0; step < 60 && nsent < MESSAGES - 32 && first_bad() == MESSAGES;
	     step++) {
		unsigned n = 1 + (unsigned)rng_below(&rng, 20);

		while (nposted < MESSAGES && nposted - ncompleted < WQES &&
		       (type != IB_QPT_RC || rng_below(&rng, 12)))
			post_receive(any_receive(&rng));
		if (nsent - nsend_completed + n < DEVICE_BLOCKS / 3 &&
		    (type == IB_QPT_RC || nsent + n <= nposted))
			send_run(&rng, n, lens[rng_below(&rng, array_size(lens))]);
		for (uint64_t i = rng_below(&rng, 4); i; i--)
			look((unsigned)rng_below(&rng, 2));
		collect();
	}
	while (!run_is_over()) {
		while (nposted < nsent && nposted - ncompleted < WQES && first_bad() == MESSAGES)
			post_receive(RECEIVE_GOOD);
		signed_pair_progress(&pair);
		collect();
		CHECK(time(NULL) < end);
	}
	for (unsigned i = 0; i < 4; i++) {
		signed_pair_progress(&pair);
		collect();
	}
	CHECK(run_is_over());
	CHECK(qp_state(rx.qp) == (first_bad() == MESSAGES ? IB_QPS_RTS : IB_QPS_ERR));
	lane_down();
}

static void send_words(unsigned n, uint8_t flags)
{
	for (unsigned i = 0; i < n; i++) {
		struct message *m = &sent[nsent++];

		*m = (struct message){.len = 8, .signaled = i + 1 == n};
		memcpy(m->bytes, &nsent, sizeof(nsent));
		put_message(m, flags);
	}
}

/* The limit is passed in the middle: one event, of one run. */
static void limit_in_run(void)
{
	lane_up(IB_QPT_RC, true, true);
	while (nposted < WQES)
		post_receive(RECEIVE_GOOD);
	srq_set_limit(srq, WQES - 7);
	send_words(16, 0);
	device_ring(&tx);
	look(1);
	CHECK(limit_events == 1 && !srq_limit(srq));
	collect();
	CHECK(ncompleted == 16);
	lane_down();
}

/* The counter makes no sense, and from then on the queue gives nothing, whatever the counter says. */
static void counter_of_shared_queue(void)
{
	lane_up(IB_QPT_RC, true, true);
	while (nposted < WQES)
		post_receive(RECEIVE_GOOD);
	error_events = 0;
	srq_dbrec = be32_of(2 * WQES + 1);
	send_words(1, 0);
	device_ring(&tx);
	look(1);
	CHECK(error_events == 1 && srq_has_failed(srq));
	CHECK(rx.async[IB_EVENT_QP_FATAL] == 1 && qp_state(rx.qp) == IB_QPS_ERR);
	CHECK(error_of(signed_pair_wait(&pair, &tx.cq)) == CQE_SYN_REM_OP);
	srq_dbrec = be32_of(WQES);
	srq_begin(srq);
	CHECK(srq_take_next(srq, &(struct recv_wqe){0}) == RECV_FAULT);
	srq_end(srq);
	srq_fail(srq);
	CHECK(error_events == 1);
	lane_down();
}

static void arm(unsigned sn, bool solicited)
{
	recv_cq.dbrec[DBREC_CQ_ARM] = be32_of(sn << 28 | (solicited ? DBREC_CQ_ARM_SOLICITED : 0) |
					      (recv_cq.ci & 0xffffff));
	cq_doorbell(recv_cq.cq);
}

/* Those in the middle are solicited. */
static void armed_run(void)
{
	lane_up(IB_QPT_RC, true, false);
	while (nposted < WQES)
		post_receive(RECEIVE_GOOD);
	arm(0, true);
	send_words(6, 0);
	device_ring(&tx);
	look(1);
	collect();
	CHECK(!recv_cq.events && ncompleted == 6);
	look(1);
	look(0);
	send_words(4, 0);
	send_words(1, WQE_CTRL_SOLICITED);
	send_words(5, 0);
	device_ring(&tx);
	look(1);
	CHECK(recv_cq.events == 1);
	collect();
	CHECK(ncompleted == 16);
	arm(1, false);
	CHECK(recv_cq.events == 1);
	send_words(16, WQE_CTRL_SOLICITED);
	device_ring(&tx);
	look(1);
	CHECK(recv_cq.events == 2);
	collect();
	CHECK(ncompleted == 32);
	arm(2, false);
	CHECK(recv_cq.events == 2);
	lane_down();
}

/* There is room for some.  The sender is told of them, and of the one whose completion is lost first. */
static void overrun_in_run(void)
{
	const struct cqe64 *c;

	lane_up(IB_QPT_RC, false, true);
	for (unsigned i = 0; i < DEVICE_CQES / 16; i++) {
		while (nposted - nsent < WQES)
			post_receive(RECEIVE_GOOD);
		send_words(i ? 16 : 11, 0);
		device_ring(&tx);
		look(1);
		look(1);
		look(0);
	}
	while (nposted - nsent < WQES)
		post_receive(RECEIVE_GOOD);
	CHECK(!recv_cq.async && qp_state(rx.qp) == IB_QPS_RTS);
	for (unsigned i = 0; i < 16; i++)
		send_words(1, 0);
	device_ring(&tx);
	look(1);
	CHECK(recv_cq.async == 1 && rx.async[IB_EVENT_QP_FATAL] == 1 &&
	      qp_state(rx.qp) == IB_QPS_ERR);
	while ((c = device_cq_poll(&recv_cq)))
		check_receive(c);
	CHECK(ncompleted == DEVICE_CQES);
	while (cqe_op(c = signed_pair_wait(&pair, &tx.cq)) == CQE_OP_REQ)
		check_send(c);
	CHECK(nsend_completed == DEVICE_CQES + 1 && error_of(c) == CQE_SYN_RETRY_EXC);
	lane_down();
}

int main(int argc, char **argv)
{
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : 12;

	test_fault_catch();
	limit_in_run();
	counter_of_shared_queue();
	armed_run();
	overrun_in_run();
	for (uint64_t seed = 1; seed <= seeds; seed++)
		for (unsigned kind = 0; kind < 8; kind++)
			random_runs(seed * 8 + kind, kind & 1 ? IB_QPT_UC : IB_QPT_RC, kind & 2,
				    kind & 4);
	return 0;
}
