// SPDX-License-Identifier: BSD-2-Clause
/* Requests that need no peer: copies, matrices, which completions there are; and the two queues of two
 * handlers. */
#include <string.h>

#include "host.h"
#include "prm/cmd_qp.h"

#define AT	4096u
#define SEED	77u
#define ROWS	5u
#define COLUMNS 3u

#define WAIT_EQUAL 1u

#define MLX5_OPCODE_RECEIVE_EN 0x16u /* of the device's header */

void own_join(struct end *e)
{
	struct peer self = {0};
	struct flexio_qp_attr attr;

	end_make(e);
	self.qpn = e->qpn;
	self.lid = e->lid;
	attr = end_attr(e, &self);
	attr.next_rcv_psn = attr.next_send_psn;
	end_move(e, &attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_RTS);
}

void own_up(struct end *e)
{
	end_open(e, false, FLEXIO_QPC_ST_RC);
	own_join(e);
}

static void copies(void)
{
	static uint8_t memory[5000];
	struct ibv_mr *mr;
	struct end e;

	own_up(&e);
	mr = ibv_reg_mr(e.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	/* within memory of the DPA, from the host to it, and back */
	end_call(&e, &fill, e.data, 5000, SEED);
	e.post.bytes = 5000;
	e.post.rkey = e.key;
	e.post.remote = e.data + 2 * AT;
	end_done(&e, POST_COPY);
	CHECK(end_call(&e, &same, e.data + 2 * AT, 5000, SEED) == 5000);
	e.post.rkey = mr->rkey;
	e.post.remote = (uintptr_t)memory;
	end_done(&e, POST_COPY);
	for (unsigned i = 0; i < 5000; i++) {
		CHECK(memory[i] == PATTERN(SEED, i));
		memory[i] = PATTERN(SEED + 1, i);
	}
	e.post.key = mr->lkey;
	e.post.data = (uintptr_t)memory;
	e.post.rkey = e.key;
	e.post.remote = e.data;
	end_done(&e, POST_COPY);
	CHECK(end_call(&e, &same, e.data, 5000, SEED + 1) == 5000);
	/* a key that does not reach so far */
	e.post.bytes = 5001;
	end_fails(&e, POST_COPY, SYNDROME_PROTECTION);
	CHECK(flexio_qp_state_get(e.qp) == FLEXIO_QP_STATE_ERR);
	CHECK(!ibv_dereg_mr(mr));
	end_close(&e);
}

static void matrices(void)
{
	struct end e;

	own_up(&e);
	e.post.element = 8;
	e.post.rows = ROWS;
	e.post.columns = COLUMNS;
	e.post.bytes = 8 * ROWS * COLUMNS;
	e.post.rkey = e.key;
	e.post.remote = e.data + AT;
	for (uint64_t i = 0; i < (uint64_t)ROWS * COLUMNS; i++)
		end_call(&e, &poke, e.data + 8 * i, i, 0);
	end_done(&e, POST_TRANSPOSE);
	for (uint64_t r = 0; r < ROWS; r++)
		for (uint64_t c = 0; c < COLUMNS; c++)
			CHECK(end_call(&e, &peek, e.data + AT + 8 * (c * ROWS + r), 0, 0) ==
			      r * COLUMNS + c);
	e.post.rows++;
	end_fails(&e, POST_TRANSPOSE, SYNDROME_QP_OPERATION);
	end_close(&e);
}

/* 0 and 1 complete in error alone, 2 and 3 always. */
static void completion_modes(void)
{
	struct end e;

	own_up(&e);
	e.post.bytes = 64;
	e.post.rkey = e.key;
	e.post.remote = e.data + AT;
	for (e.post.ce = 0; e.post.ce < 4; e.post.ce++) {
		uint16_t counter = (uint16_t)e.post.pi;

		end_post(&e, POST_WRITE);
		if (e.post.ce < 2) {
			CHECK(end_quiet(&e, &e.sent));
			continue;
		}
		CHECK(end_take(&e, &e.sent) == DONE_REQUEST && e.last.counter == counter);
	}
	end_close(&e);
}

/* The second of several requests with one bell fails.  Those behind it are flushed: 1 is silent, as an error
 * has been told; the others are not. */
static void error_modes(void)
{
	for (unsigned ce = 0; ce < 4; ce++) {
		struct end e;

		own_up(&e);
		e.post.bytes = 64;
		e.post.rkey = e.key;
		e.post.remote = e.data + AT;
		e.post.ce = ce;
		e.post.silent = 1;
		end_post(&e, POST_WRITE);
		e.post.key ^= 0x1000;
		end_post(&e, POST_WRITE);
		end_post(&e, POST_WRITE);
		e.post.silent = 0;
		end_post(&e, POST_WRITE);
		if (ce >= 2)
			CHECK(end_take(&e, &e.sent) == DONE_REQUEST);
		CHECK(end_take(&e, &e.sent) == DONE_REQUEST_ERROR);
		CHECK(e.last.syndrome == SYNDROME_PROTECTION);
		CHECK(e.last.counter == (uint16_t)(e.post.pi - 3));
		/* these two, and one that comes later */
		for (unsigned i = 0; i < 3; i++) {
			if (i == 2)
				end_post(&e, POST_WRITE);
			if (ce == 1) {
				CHECK(end_quiet(&e, &e.sent));
				continue;
			}
			CHECK(end_take(&e, &e.sent) == DONE_REQUEST_ERROR);
			CHECK(e.last.syndrome == SYNDROME_FLUSHED);
		}
		CHECK(end_quiet(&e, &e.sent));
		/* a request that wants a completion gets it */
		e.post.ce = 2;
		end_fails(&e, POST_WRITE, SYNDROME_FLUSHED);
		end_close(&e);
	}
	/* in error without one that failed, the first one that is flushed tells */
	{
		struct end e;

		own_up(&e);
		e.made.next_state = FLEXIO_QP_STATE_ERR;
		OK(flexio_qp_modify(e.qp, &e.made, NULL));
		e.post.ce = 1;
		end_fails(&e, POST_NOP, SYNDROME_FLUSHED);
		end_post(&e, POST_NOP);
		CHECK(end_quiet(&e, &e.sent));
		end_close(&e);
	}
}

/* A request that waits keeps those behind it back. */
static void waits(void)
{
	struct end e;

	own_up(&e);
	e.post.bytes = 64;
	e.post.rkey = e.key;
	e.post.remote = e.data + AT;
	/* for a word: the masked half of it is 7 */
	end_call(&e, &poke, e.data + AT, 0, 0);
	e.post.element = WAIT_EQUAL;
	e.post.compare = 7;
	e.post.swap_add = 0xffffffff;
	end_post(&e, POST_WAIT_WORD);
	end_post(&e, POST_NOP);
	CHECK(end_quiet(&e, &e.sent));
	end_call(&e, &poke, e.data + AT, __builtin_bswap64(0x100000007), 0);
	CHECK(end_take(&e, &e.sent) == DONE_REQUEST);
	CHECK(end_take(&e, &e.sent) == DONE_REQUEST);
	/* for a completion that receives make */
	e.post.columns = flexio_cq_get_cq_num(e.received.cq);
	e.post.rows = 1;
	end_receive(&e, 1, e.data + 2 * AT, 64);
	end_post(&e, POST_SEND);
	CHECK(end_take(&e, &e.sent) == DONE_REQUEST);
	end_done(&e, POST_WAIT);
	e.post.rows = 2;
	end_post(&e, POST_WAIT);
	CHECK(end_quiet(&e, &e.sent));
	/* in error it is flushed */
	e.made.next_state = FLEXIO_QP_STATE_ERR;
	OK(flexio_qp_modify(e.qp, &e.made, NULL));
	CHECK(end_take(&e, &e.sent) == DONE_REQUEST_ERROR && e.last.syndrome == SYNDROME_FLUSHED);
	end_close(&e);
	/* a queue pair that is no slave */
	own_up(&e);
	e.post.columns = e.qpn;
	end_fails(&e, POST_ENABLE, SYNDROME_QP_OPERATION);
	end_close(&e);
}

/* What stands in the header and the device has not got, each with the segments of a request that it has. */
static void opcodes(void)
{
	static const uint8_t missing[] = {0x14, 0x15, 0x21, 0x22, 0x23, 0x26, 0x27,
					  0x28, 0x2a, 0x2c, 0x2d, 0x30, 0x31};

	for (size_t i = 0; i < sizeof(missing); i++) {
		struct end e;

		own_up(&e);
		end_done(&e, POST_NOP);
		e.post.opcode = missing[i];
		e.post.bytes = 8;
		e.post.remote = e.data + AT;
		e.post.rkey = e.key;
		end_fails(&e, POST_ADD, SYNDROME_QP_OPERATION);
		CHECK(flexio_qp_state_get(e.qp) == FLEXIO_QP_STATE_ERR);
		end_close(&e);
	}
}

static void become_slave(uint8_t *in)
{
	CHECK(prm_get(in, CMD_IN_OPCODE) == PRM_OP_CREATE_QP);
	prm_set(in + CREATE_QP_CONTEXT, QPC_SLAVE_SEND, 1);
	prm_set(in + CREATE_QP_CONTEXT, QPC_SLAVE_RECEIVE, 1);
}

/* A queue pair that is so by its context alone sends and receives as much as another one enables. */
static void slaves(void)
{
	struct end master, e;
	struct peer p;

	own_up(&master);
	end_open(&e, false, FLEXIO_QPC_ST_RC);
	creation_change = become_slave;
	end_make(&e);
	creation_change = NULL;
	peer_up(&p, false, "rc", NULL);
	end_meet(&e, &p);
	master.post.columns = e.qpn;
	peer_do(&p, "recv 8 0 64");
	end_receive(&e, 8, e.data, 64);
	e.post.bytes = 8;
	for (unsigned i = 1; i <= 4; i++) {
		master.post.rows = i;
		end_post(&e, POST_SEND);
		CHECK(end_quiet(&e, &e.sent) && !peer_ask(&p, "none"));
		master.post.opcode = 0;
		end_done(&master, POST_ENABLE);
		CHECK(end_take(&e, &e.sent) == DONE_REQUEST && !peer_wait(&p).status);
		peer_do(&p, "post %d 0 16", IBV_WR_SEND);
		CHECK(end_quiet(&e, &e.received));
		master.post.opcode = MLX5_OPCODE_RECEIVE_EN;
		end_done(&master, POST_ENABLE);
		CHECK(end_take(&e, &e.received) == DONE_SEND && e.last.bytes == 16);
		CHECK(!peer_wait(&p).status);
	}
	peer_down(&p);
	end_close(&e);
	end_close(&master);
}

/* Eight bytes of an entry. */
static uint64_t entry_word(struct end *e, unsigned entry, unsigned word)
{
	return __builtin_bswap64(
		end_call(e, &peek, e->sent.ring + 64ull * entry + 8ull * word, 0, 0));
}

/* Requests with one bell for all of them: their completions stand together. */
static void compressed(void)
{
	for (unsigned type = FLEXIO_CQE_COMP_BASIC; type <= FLEXIO_CQE_COMP_ENH; type++) {
		struct end e;
		uint64_t last;

		end_open(&e, false, FLEXIO_QPC_ST_RC);
		e.compression = (enum flexio_cqe_comp_type)type;
		OK(flexio_cq_destroy(e.sent.cq));
		line_up(&e, &e.sent);
		e.made.sq_cqn = flexio_cq_get_cq_num(e.sent.cq);
		own_join(&e);
		for (unsigned i = 0; i < 5; i++) {
			e.post.silent = i < 4;
			end_post(&e, POST_NOP);
		}
		last = entry_word(&e, 0, 7);
		CHECK((uint16_t)(last >> 16) == 0);
		if (type == FLEXIO_CQE_COMP_ENH) {
			/* one whole, then four, all of the ring's first round */
			CHECK((uint16_t)last == 0);
			CHECK((uint16_t)entry_word(&e, 1, 7) == (3 << 4 | 0xc));
		} else {
			CHECK((last & 0xff) == 0xc && (uint32_t)entry_word(&e, 0, 5) == 5);
		}
		for (unsigned i = 0; i < 4; i++)
			CHECK(entry_word(&e, 1, i) >> 48 ==
			      (type == FLEXIO_CQE_COMP_ENH ? i + 1 : i));
		end_close(&e);
	}
}

const struct host_case local_cases[] = {
	{"copies", copies},
	{"matrices", matrices},
	{"completion_modes", completion_modes},
	{"error_modes", error_modes},
	{"waits", waits},
	{"slaves", slaves},
	{"opcodes", opcodes},
	{"compressed", compressed},
	{NULL, NULL},
};
