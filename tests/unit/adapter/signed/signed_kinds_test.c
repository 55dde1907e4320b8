// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keys with signatures on the other transports, and in several threads at once: while two queue
 * pairs find the same errors, each time the key is armed one of them is told, and once.
 */
#include <pthread.h>
#include <string.h>

#include "adapter/memory/psv.h"
#include "base/explain.h"
#include "base/hazard.h"
#include "captured.h"
#include "signed_pair.h"

#define SIGNALED WQE_CTRL_CE_ALWAYS

enum { TARGET = SIGNED_PAIR_BYTES / 2, ROUNDS = 2000 };

/* ---- unreliable transports ---- */

static void blocks_arrive(struct signed_pair *t, const uint8_t *at)
{
	for (unsigned k = 0; k < BLOCKS; k++)
		CHECK(!memcmp(at + (size_t)k * BLOCK, t->side[0].memory + (size_t)k * UNIT, BLOCK));
}

/* Block 2 is said to be what it is, next to what it should be: one bit differs. */
static void check_told(const char *text, const struct signed_pair *t)
{
	unsigned is, expected;
	char head[200];

	(void)snprintf(head, sizeof(head),
		       ": signature error: the guard of block 2, which begins at offset %d of the "
		       "memory under key 0x%x, is ",
		       2 * UNIT, t->side[0].skey);
	text = strstr(text, head);
	CHECK(text);
	CHECK(sscanf(text + strlen(head), "0x%x, and 0x%x was expected", &is, &expected) == 2);
	CHECK(is && __builtin_popcount(is ^ expected) == 1);
}

/* Checked and stripped on the way out; made on the way in. */
static void test_connected(struct signed_pair *t)
{
	struct signed_pair_side *peer = &t->side[1];
	struct device_wqe w;

	for (unsigned write = 0; write < 2; write++) {
		signed_pair_connect(t, IB_MTU_1024);
		key_up(t, 0, 0xf0);
		fill(t, 0, 4);
		memset(peer->memory, 0xee, SIGNED_PAIR_BYTES);
		device_recv(&peer->q, peer->memory + TARGET, BLOCK * BLOCKS, peer->lkey);
		device_wqe_begin(&t->side[0].q, &w, write ? WQE_OP_RDMA_WRITE : WQE_OP_SEND,
				 SIGNALED, 0);
		if (write)
			device_wqe_raddr(&w, (uintptr_t)(peer->memory + TARGET), peer->lkey);
		device_wqe_data(&w, NULL, BLOCK * BLOCKS, t->side[0].skey);
		explain_on = true;
		capture_begin();
		device_wqe_end(&w);
		expect_error(t, 0, 2);
		explain_flush();
		check_told(capture_end(), t);
		explain_on = false;
		CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ);
		if (!write)
			CHECK(cqe_op(next(t, 1)) == CQE_OP_RESP_SEND);
		blocks_arrive(t, peer->memory + TARGET);
	}
	signed_pair_connect(t, IB_MTU_1024);
	key_up(t, 0, 0xf0);
	fill(t, 0, 0);
	key_up(t, 1, 0xf0);
	device_wqe_begin(&t->side[0].q, &w, WQE_OP_RDMA_WRITE, SIGNALED, 0);
	device_wqe_raddr(&w, 0, peer->skey);
	device_wqe_data(&w, NULL, BLOCK * BLOCKS, t->side[0].skey);
	device_wqe_end(&w);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && idle(t));
	CHECK(!memcmp(peer->memory, t->side[0].memory, UNIT * BLOCKS));
}

static void post_datagram(struct signed_pair *t, uint32_t lkey, const void *addr)
{
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of((uint64_t)0x11111111 << 32),
		.dqp_dct = be32_of(qp_number(t->side[1].q.qp)),
		.rlid = be16_of(7),
	};
	struct device_wqe w;

	device_wqe_begin(&t->side[0].q, &w, WQE_OP_SEND, SIGNALED, 0);
	memcpy(w.bytes + w.at, &av, 16);
	w.at += 16;
	device_wqe_data(&w, addr, 2 * BLOCK, lkey);
	device_wqe_end(&w);
}

static void post_receive(struct signed_pair *t, const void *addr, uint32_t lkey)
{
	struct device_qp *q = &t->side[1].q;
	const struct wqe_data list[2] = {
		{be32_of(IB_GRH_BYTES), be32_of(t->side[1].lkey),
		 be64_of((uintptr_t)(t->side[1].memory + TARGET))},
		{be32_of(2 * BLOCK), be32_of(lkey), be64_of((uintptr_t)addr)},
	};

	/* device_recv makes room for one entry and the end */
	device_recv(q, NULL, 0, 0);
	memcpy(q->rq + (size_t)((q->rq_pi - 1) % DEVICE_RECVS) * DEVICE_RQ_BYTES, list,
	       sizeof(list));
}

static void test_datagrams(struct signed_pair *t)
{
	struct signed_pair_side *peer = &t->side[1];

	for (unsigned scatter = 0; scatter < 2; scatter++) {
		signed_pair_connect(t, IB_MTU_4096);
		key_up(t, 0, 0xf0);
		key_up(t, 1, 0xf0);
		fill(t, 0, scatter ? 0 : 2);
		memset(peer->memory, 0xee, SIGNED_PAIR_BYTES);
		post_receive(t, scatter ? NULL : peer->memory, scatter ? peer->skey : peer->lkey);
		post_datagram(t, t->side[0].skey, NULL);
		if (!scatter)
			expect_error(t, 0, 1);
		CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ);
		CHECK(cqe_op(next(t, 1)) == CQE_OP_RESP_SEND && idle(t));
		if (scatter)
			CHECK(!memcmp(peer->memory, t->side[0].memory, 2 * UNIT));
		else
			CHECK(!memcmp(peer->memory, t->side[0].memory, BLOCK) &&
			      !memcmp(peer->memory + BLOCK, t->side[0].memory + UNIT, BLOCK));
		CHECK(peer->memory[scatter ? 2 * UNIT : 2 * BLOCK] == 0xee);
	}
}

/* ---- threads ---- */

static struct signed_pair many;
static _Atomic(bool) over;
static _Atomic(unsigned) told, arms;
/*
 * How often the key was armed since queue 0 was last seen empty.  Each time can leave one entry
 * there, whose reader may not get the CPU for long.
 */
static _Atomic(unsigned) untold;

enum { MAX_UNTOLD = 64 };

static void post_request(unsigned side)
{
	struct signed_pair_side *owner = &many.side[0], *peer = &many.side[1];
	struct device_wqe w;

	/* of both the data leaves the key of side 0 */
	device_wqe_begin(&many.side[side].q, &w, side ? WQE_OP_RDMA_READ : WQE_OP_RDMA_WRITE,
			 SIGNALED, 0);
	if (side)
		device_wqe_raddr(&w, 0, owner->skey);
	else
		device_wqe_raddr(&w, (uintptr_t)(peer->memory + TARGET), peer->lkey);
	device_wqe_data(&w, side ? (void *)peer->memory : NULL, BLOCK * BLOCKS,
			side ? peer->lkey : owner->skey);
	device_wqe_end(&w);
}

/* Until the request of this side is done. */
static void take_completions(unsigned side)
{
	for (;;) {
		const struct cqe64 *cqe = device_cq_poll(&many.side[side].q.cq);

		if (!cqe) {
			if (!side)
				atomic_store(&untold, 0);
			adapter_progress(many.device.adapter[0], NULL);
			continue;
		}
		if (cqe_op(cqe) == CQE_OP_REQ)
			return;
		CHECK(cqe_op(cqe) == CQE_OP_SIG_ERR && !side);
		atomic_fetch_add(&told, 1);
	}
}

static void *requests_loop(void *arg)
{
	unsigned side = *(unsigned *)arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		post_request(side);
		take_completions(side);
	}
	atomic_store(&over, true);
	return NULL;
}

static void arm_cq(void)
{
	hazard_enter();
	/* before the key is armed, for it may be used up at once */
	atomic_fetch_add(&arms, 1);
	CHECK(psv_set(many.device.adapter[0], psv_number(many.side[0].psv[SIG_MEMORY]),
		      many.side[0].q.pdn, 0));
	hazard_leave();
}

static void *arming_loop(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		if (atomic_fetch_add(&untold, 1) < MAX_UNTOLD)
			arm_cq();
		sched_yield();
	}
	return NULL;
}

static void test_threads(void)
{
	static unsigned sides[2] = {0, 1};
	pthread_t t[3];
	unsigned before;

	signed_pair_up(&many, false);
	start(&many, false, 0xf0, 1u << 5);
	CHECK(!pthread_create(&t[0], NULL, requests_loop, &sides[0]));
	CHECK(!pthread_create(&t[1], NULL, requests_loop, &sides[1]));
	CHECK(!pthread_create(&t[2], NULL, arming_loop, NULL));
	for (unsigned i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	for (unsigned side = 0; side < 2; side++)
		blocks_arrive(&many, many.side[1].memory + (side ? 0 : TARGET));
	post_request(0);
	take_completions(0);
	/* one when it was configured, and one for each time at most */
	CHECK(atomic_load(&told) >= 1 && atomic_load(&told) <= 1 + atomic_load(&arms));
	before = atomic_load(&told);
	arm_cq();
	post_request(0);
	take_completions(0);
	post_request(0);
	take_completions(0);
	CHECK(atomic_load(&told) == before + 1);
	signed_pair_down(&many);
}

int main(void)
{
	static struct signed_pair pair;

	signed_pair_up_of(&pair, IB_QPT_UC);
	test_connected(&pair);
	signed_pair_down(&pair);
	signed_pair_up_of(&pair, IB_QPT_UD);
	test_datagrams(&pair);
	signed_pair_down(&pair);
	test_threads();
	return 0;
}
