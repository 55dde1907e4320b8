// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs without one of their queues, or of another domain; waits for a time; completions that stand
 * together. */
#include <string.h>

#include "host.h"

#define PLACE	      4096u
#define BYTES	      3000u
#define ALL_BITS      UINT64_MAX
#define WAIT_SMALLER  3u
#define WAIT_TIME     2u
#define LATER_NS      200000000ull
#define RQ_RING_BYTES (16u << LOG_DEPTH)

/* ---- a time ---- */

/* What is behind the wait is done when the time has come, and not before; a time that has passed holds nothing
 * back. */
static void wait_time(void)
{
	struct end e;
	uint64_t time;

	own_up(&e);
	end_done(&e, POST_NOP);
	e.post.variant = WAIT_TIME;
	e.post.element = WAIT_SMALLER;
	e.post.swap_add = ALL_BITS;
	for (unsigned later = 0; later < 2; later++) {
		time = e.last.time + (later ? LATER_NS : 0);
		e.post.compare = time;
		end_post(&e, POST_WAIT_WORD);
		end_post(&e, POST_NOP);
		for (unsigned i = 0; i < 2; i++) {
			CHECK(end_take(&e, &e.sent) == DONE_REQUEST);
			CHECK_SAY(e.last.time > time, "%llu, not behind %llu",
				  (unsigned long long)e.last.time, (unsigned long long)time);
		}
	}
	/* the contrary of a condition that holds; in error it is flushed */
	e.post.element = WAIT_SMALLER | 0x10;
	end_post(&e, POST_WAIT_WORD);
	CHECK(end_quiet(&e, &e.sent));
	e.made.next_state = FLEXIO_QP_STATE_ERR;
	OK(flexio_qp_modify(e.qp, &e.made, NULL));
	CHECK(end_take(&e, &e.sent) == DONE_REQUEST_ERROR && e.last.syndrome == SYNDROME_FLUSHED);
	end_close(&e);
}

/* ---- completions that stand together ---- */

static void packed_read(struct end *e, bool enhanced)
{
	struct packed k = {.ring = e->received.ring, .enhanced = enhanced, .count = PACKED};
	flexio_uintptr_t at;

	OK(flexio_copy_from_host(e->p, &k, sizeof(k), &at));
	CHECK(!end_call(e, &unpack, at, 0, 0));
	for (unsigned i = 0; i < PACKED; i++)
		CHECK(end_call(e, &peek, at + offsetof(struct packed, bytes) + 8 * i, 0, 0) ==
		      8 * (i + 1));
	CHECK(!end_call(e, &peek, at + offsetof(struct packed, counter), 0, 0));
	OK(flexio_buf_dev_free(e->p, at));
}

/* Messages of one bell to the own end: device code finds the length of each. */
static void packed(void)
{
	for (unsigned type = FLEXIO_CQE_COMP_BASIC; type <= FLEXIO_CQE_COMP_ENH; type++) {
		struct end e;

		end_open(&e, false, FLEXIO_QPC_ST_RC);
		e.compression = (enum flexio_cqe_comp_type)type;
		OK(flexio_cq_destroy(e.received.cq));
		line_up(&e, &e.received);
		e.made.rq_cqn = flexio_cq_get_cq_num(e.received.cq);
		own_join(&e);
		end_receive(&e, PACKED, e.data + PLACE, 64);
		for (unsigned i = 0; i < PACKED; i++) {
			e.post.silent = i + 1 < PACKED;
			e.post.bytes = 8 * (i + 1);
			end_post(&e, POST_SEND);
		}
		for (unsigned i = 0; i < PACKED; i++)
			CHECK(end_take(&e, &e.sent) == DONE_REQUEST);
		packed_read(&e, type == FLEXIO_CQE_COMP_ENH);
		end_close(&e);
	}
}

/* ---- queue pairs without a part ---- */

static void part_write_here(struct end *e, struct peer *p)
{
	peer_do(p, "fill 0 %u 9", BYTES);
	peer_do(p, "post %d 0 %u %llu %u", IBV_WR_RDMA_WRITE, BYTES,
		(unsigned long long)(e->data + PLACE), e->key);
	CHECK(!peer_wait(p).status);
	CHECK(end_call(e, &same, e->data + PLACE, BYTES, 9) == BYTES);
}

/* Receives lie where both would, and there is nothing behind them. */
static void receives_alone(void)
{
	struct peer p;
	struct end e;

	end_open(&e, true, FLEXIO_QPC_ST_RC);
	e.made.no_sq = 1;
	e.made.sq_cqn = 0;
	end_make(&e);
	peer_up(&p, true, "rc", NULL);
	end_meet(&e, &p);
	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		peer_do(&p, "fill 0 %u %u", BYTES, i);
		end_receive(&e, 1, e.data, BYTES);
		peer_do(&p, "post %d 0 %u", IBV_WR_SEND, BYTES);
		CHECK(end_take(&e, &e.received) == DONE_SEND && e.last.bytes == BYTES);
		CHECK(end_call(&e, &same, e.data, BYTES, i) == BYTES);
		CHECK(!peer_wait(&p).status);
	}
	part_write_here(&e, &p);
	/* what was written is read */
	peer_do(&p, "post %d 0 %u %llu %u", IBV_WR_RDMA_READ, BYTES,
		(unsigned long long)(e.data + PLACE), e.key);
	CHECK(!peer_wait(&p).status);
	CHECK(peer_ask(&p, "same 0 %u 9", BYTES) == BYTES);
	/* a bell for requests that it cannot have */
	end_post(&e, POST_NOP);
	CHECK(end_quiet(&e, &e.sent) && flexio_qp_state_get(e.qp) == FLEXIO_QP_STATE_RTS);
	peer_down(&p);
	end_close(&e);
}

/* Requests begin where receives would. */
static void sends_alone(void)
{
	struct peer p;
	struct end e;

	end_open(&e, true, FLEXIO_QPC_ST_RC);
	e.made.rq_type = FLEXIO_QP_QPC_RQ_TYPE_ZERO_SIZE_RQ;
	end_make(&e);
	e.post.ring -= RQ_RING_BYTES;
	peer_up(&p, true, "rc", NULL);
	end_meet(&e, &p);
	e.post.bytes = BYTES;
	e.post.remote = p.memory + PLACE;
	e.post.rkey = p.rkey;
	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		end_call(&e, &fill, e.data, BYTES, i);
		end_done(&e, POST_WRITE);
		CHECK(peer_ask(&p, "same %u %u %u", PLACE, BYTES, i) == BYTES);
		end_call(&e, &fill, e.data, BYTES, i + 1);
		end_done(&e, POST_READ);
		CHECK(end_call(&e, &same, e.data, BYTES, i) == BYTES);
		peer_do(&p, "recv 1 0 %u", BYTES);
		end_done(&e, POST_SEND);
		CHECK(peer_wait(&p).bytes == BYTES);
	}
	part_write_here(&e, &p);
	peer_down(&p);
	end_close(&e);
}

/* ---- another domain ---- */

static void foreign_domain(void)
{
	struct flexio_mkey_attr attr = {.len = DATA_BYTES, .access = RIGHTS};
	struct flexio_mkey *mkey;
	struct ibv_pd *pd;
	struct peer p;
	struct end e;

	end_open(&e, true, FLEXIO_QPC_ST_RC);
	pd = ibv_alloc_pd(e.ctx);
	CHECK(pd);
	attr.pd = e.made.pd = pd;
	attr.daddr = e.data;
	OK(flexio_device_mkey_create(e.p, &attr, &mkey));
	end_make(&e);
	peer_up(&p, true, "rc", NULL);
	end_meet(&e, &p);
	e.post.bytes = BYTES;
	e.post.remote = p.memory + PLACE;
	e.post.rkey = p.rkey;
	end_call(&e, &fill, e.data, BYTES, 3);
	e.post.key = flexio_mkey_get_id(mkey);
	end_done(&e, POST_WRITE);
	CHECK(peer_ask(&p, "same %u %u 3", PLACE, BYTES) == BYTES);
	/* the peer's requests, too; a key of the process's domain is none here */
	peer_do(&p, "post %d 0 8 %llu %u", IBV_WR_RDMA_READ, (unsigned long long)e.data,
		flexio_mkey_get_id(mkey));
	CHECK(!peer_wait(&p).status);
	e.post.key = e.key;
	end_fails(&e, POST_WRITE, SYNDROME_PROTECTION);
	CHECK(flexio_qp_state_get(e.qp) == FLEXIO_QP_STATE_ERR);
	peer_down(&p);
	/* in the other direction */
	OK(flexio_qp_destroy(e.qp));
	end_make(&e);
	peer_up(&p, true, "rc", NULL);
	end_meet(&e, &p);
	peer_do(&p, "post %d 0 8 %llu %u", IBV_WR_RDMA_WRITE, (unsigned long long)e.data, e.key);
	CHECK(peer_wait(&p).status == IBV_WC_REM_ACCESS_ERR);
	peer_down(&p);
	OK(flexio_qp_destroy(e.qp));
	e.qp = NULL;
	OK(flexio_device_mkey_destroy(mkey));
	CHECK(!ibv_dealloc_pd(pd));
	end_close(&e);
}

const struct host_case part_cases[] = {
	{"wait_time", wait_time},	    {"packed", packed},
	{"receives_alone", receives_alone}, {"sends_alone", sends_alone},
	{"foreign_domain", foreign_domain}, {NULL, NULL},
};
