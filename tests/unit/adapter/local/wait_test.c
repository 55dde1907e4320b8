// SPDX-License-Identifier: BSD-2-Clause
/* Requests that wait for completions, memory or the time, and those that enable another queue's. */
#include <string.h>

#include "adapter_device.h"
#include "base/clock.h"
#include "check.h"

#define PATIENCE_NS 5000000000ull

/* The one that waits and enables, and another, whose completions are awaited and which is a slave. */
struct wait_case {
	struct test_device device;
	struct device_qp master, other;
	_Alignas(8) uint8_t memory[64];
	struct mkey *region, *others; /* of the same memory, for each's domain */
	uint32_t key, others_key;
};

enum slave { NO_SLAVE, SLAVE_SENDS, SLAVE_RECEIVES };

static void wait_case_up(struct wait_case *t, enum ib_qp_type type, enum slave slave)
{
	memset(t->memory, 0, sizeof(t->memory));
	device_up(&t->device);
	t->device.master = true;
	device_qp_up(&t->device, 0, &t->master, type);
	t->device.master = false;
	t->device.slave_send = slave == SLAVE_SENDS;
	t->device.slave_receive = t->device.patient = slave == SLAVE_RECEIVES;
	device_qp_up(&t->device, 0, &t->other, type);
	device_connect(&t->device, 0, &t->master, &t->master);
	device_connect(&t->device, 0, &t->other, &t->other);
	t->key = device_mr(&t->device, 0, t->master.pdn, t->memory, sizeof(t->memory), 0,
			   &t->region);
	t->others_key = device_mr(&t->device, 0, t->other.pdn, t->memory, sizeof(t->memory),
				  IB_ACCESS_LOCAL_WRITE, &t->others);
}

static void wait_case_down(struct wait_case *t)
{
	device_qp_down(&t->master);
	device_qp_down(&t->other);
	mkey_destroy(t->device.adapter[0], t->region);
	mkey_destroy(t->device.adapter[0], t->others);
	device_down(&t->device);
}

static void post_nop(struct device_qp *q)
{
	struct device_wqe w;

	device_wqe_begin(q, &w, WQE_OP_NOP, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_end(&w);
}

static void post_sync(struct device_qp *q, uint8_t opcode, uint32_t number, uint32_t index)
{
	const struct wqe_sync s = {.index = be32_of(index), .number = be32_of(number)};
	struct device_wqe w;

	device_wqe_begin(q, &w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	memcpy(w.bytes + w.at, &s, sizeof(s));
	w.at += sizeof(s);
	device_wqe_end(&w);
}

struct condition {
	uint8_t opmod;
	uint32_t operation;
	uint64_t value, mask;
};

static void post_wait(struct wait_case *t, const struct condition *c, uint32_t key, uint64_t addr)
{
	struct wqe_wait s = {.operation = be32_of(c->operation),
			     .lkey = be32_of(key),
			     .addr = be64_of(addr),
			     .value = be64_of(c->value),
			     .mask = be64_of(c->mask)};
	struct device_wqe w;

	device_wqe_begin(&t->master, &w, WQE_OP_WAIT, WQE_CTRL_CE_ALWAYS, 0);
	w.bytes[0] = c->opmod;
	memcpy(w.bytes + w.at, &s, sizeof(s));
	w.at += sizeof(s);
	device_wqe_end(&w);
}

static bool done(struct device_qp *q, uint8_t opcode)
{
	const struct cqe64 *cqe = device_cq_poll(&q->cq);

	if (!cqe)
		return false;
	CHECK(cqe->op_own >> 4 == CQE_OP_REQ);
	CHECK(be32_get(cqe->sop_drop_qpn) >> 24 == opcode);
	return true;
}

/* Lets the device work until there is such a completion. */
static void done_in_time(struct wait_case *t, struct device_qp *q, uint8_t opcode)
{
	uint64_t begin = clock_ns();

	while (!done(q, opcode)) {
		adapter_progress(t->device.adapter[0], NULL);
		CHECK(clock_ns() - begin < PATIENCE_NS);
	}
}

/* Nothing completes for a while, however often the device looks. */
static void stays_quiet(struct wait_case *t, struct device_qp *q, uint64_t ns)
{
	uint64_t begin = clock_ns();

	do {
		adapter_progress(t->device.adapter[0], NULL);
		CHECK(!device_cq_poll(&q->cq));
	} while (clock_ns() - begin < ns);
}

static void failed(struct device_qp *q, uint8_t syndrome)
{
	const struct cqe64_err *cqe = (const struct cqe64_err *)device_cq_poll(&q->cq);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ_ERR);
	CHECK(cqe->syndrome == syndrome);
}

/* The second completion of another queue, with a request behind; longer than any answer may take. */
static void test_completions(void)
{
	static const enum ib_qp_type types[] = {IB_QPT_RC, IB_QPT_UC, IB_QPT_UD};
	struct wait_case t;

	for (unsigned i = 0; i < array_size(types); i++) {
		wait_case_up(&t, types[i], NO_SLAVE);
		post_sync(&t.master, WQE_OP_WAIT, cq_number(t.other.cq.cq), 2);
		post_nop(&t.master);
		post_nop(&t.other);
		CHECK(done(&t.other, WQE_OP_NOP));
		stays_quiet(&t, &t.master, 20000000);
		post_nop(&t.other);
		CHECK(done(&t.master, WQE_OP_WAIT) && done(&t.master, WQE_OP_NOP));
		/* what has come already */
		post_sync(&t.master, WQE_OP_WAIT, cq_number(t.other.cq.cq), 1);
		CHECK(done(&t.master, WQE_OP_WAIT));
		wait_case_down(&t);
	}
}

/* A queue pair that stops waiting is not told, and one whose queue goes fails. */
static void test_ends(void)
{
	struct qp_attr attr = {.state = IB_QPS_RESET};
	struct device_cq awaited;
	struct wait_case t;

	wait_case_up(&t, IB_QPT_RC, NO_SLAVE);
	device_cq_up(&t.device, 0, &awaited);
	post_sync(&t.master, WQE_OP_WAIT, cq_number(awaited.cq), 1);
	CHECK(!qp_modify(t.master.qp, &attr, IB_QP_STATE));
	CHECK(!cq_destroy(awaited.cq));
	CHECK(!device_cq_poll(&t.master.cq));

	device_cq_up(&t.device, 0, &awaited);
	t.master.sq_pi = 0;
	memset(t.master.dbrec, 0, sizeof(t.master.dbrec));
	device_connect(&t.device, 0, &t.master, &t.master);
	post_sync(&t.master, WQE_OP_WAIT, cq_number(awaited.cq), 1);
	CHECK(!device_cq_poll(&t.master.cq));
	CHECK(!cq_destroy(awaited.cq));
	adapter_progress(t.device.adapter[0], NULL);
	failed(&t.master, CQE_SYN_LOCAL_QP_OP);
	wait_case_down(&t);

	/* and one that goes while it waits */
	wait_case_up(&t, IB_QPT_RC, NO_SLAVE);
	post_sync(&t.master, WQE_OP_WAIT, cq_number(t.other.cq.cq), 1);
	wait_case_down(&t);
}

static void memory_set(struct wait_case *t, uint64_t value)
{
	be64 word = be64_of(value);

	memcpy(t->memory + 8, &word, sizeof(word));
}

static void test_memory(void)
{
	static const struct {
		struct condition c;
		uint64_t before, after; /* what does not do, and what does */
	} rows[] = {
		{{WQE_OPMOD_WAIT_DATA, WQE_WAIT_EQUAL, 0x1234, 0xffff}, 0x1235, 0x771234},
		{{WQE_OPMOD_WAIT_DATA, WQE_WAIT_EQUAL | WQE_WAIT_INVERT, 5, ~0ull}, 5, 6},
		{{WQE_OPMOD_WAIT_DATA, WQE_WAIT_BIGGER, 5, ~0ull}, 5, 4},
		{{WQE_OPMOD_WAIT_DATA, WQE_WAIT_SMALLER, 5, ~0ull}, 5, 6},
		{{WQE_OPMOD_WAIT_DATA, WQE_WAIT_CYCLIC_SMALLER, 0xfffe, 0xffff}, 0xfffe, 0x10001},
		{{WQE_OPMOD_WAIT_DATA, WQE_WAIT_CYCLIC_BIGGER, 1, 0xffff}, 1, 0xffff},
		{{WQE_OPMOD_WAIT_DATA, WQE_WAIT_ALWAYS | WQE_WAIT_INVERT, 0, 0}, 0, 0},
	};
	struct wait_case t;

	for (unsigned i = 0; i < array_size(rows); i++) {
		wait_case_up(&t, IB_QPT_RC, NO_SLAVE);
		memory_set(&t, rows[i].before);
		post_wait(&t, &rows[i].c, t.key, (uintptr_t)t.memory + 8);
		post_nop(&t.master);
		stays_quiet(&t, &t.master, 3000000);
		memory_set(&t, rows[i].after);
		/* the last one never comes true */
		if (i + 1 < array_size(rows)) {
			done_in_time(&t, &t.master, WQE_OP_WAIT);
			CHECK(done(&t.master, WQE_OP_NOP));
		} else {
			stays_quiet(&t, &t.master, 3000000);
		}
		wait_case_down(&t);
	}
}

static void test_time(void)
{
	struct condition c = {WQE_OPMOD_WAIT_TIME, WQE_WAIT_CYCLIC_SMALLER, 0, ~0ull};
	struct wait_case t;

	wait_case_up(&t, IB_QPT_RC, NO_SLAVE);
	c.value = clock_ns() + 3000000;
	post_wait(&t, &c, 0, 0);
	done_in_time(&t, &t.master, WQE_OP_WAIT);
	CHECK(clock_ns() > c.value);
	/* what is past */
	post_wait(&t, &c, 0, 0);
	CHECK(done(&t.master, WQE_OP_WAIT));
	wait_case_down(&t);
}

/* A slave sends what its master has enabled, and flushes all. */
static void test_enabling(void)
{
	struct qp_attr attr = {.state = IB_QPS_ERR};
	struct wait_case t;

	wait_case_up(&t, IB_QPT_RC, SLAVE_SENDS);
	for (unsigned i = 0; i < 3; i++)
		post_nop(&t.other);
	CHECK(!device_cq_poll(&t.other.cq));
	/* when the first one has completed, the second is enabled */
	post_sync(&t.master, WQE_OP_SEND_EN, qp_number(t.other.qp), 1);
	CHECK(done(&t.master, WQE_OP_SEND_EN));
	CHECK(done(&t.other, WQE_OP_NOP) && !device_cq_poll(&t.other.cq));
	post_sync(&t.master, WQE_OP_WAIT, cq_number(t.other.cq.cq), 2);
	CHECK(!device_cq_poll(&t.master.cq));
	/* back is no way; one that is not posted yet comes at once then */
	post_sync(&t.master, WQE_OP_NOP, 0, 0);
	CHECK(!qp_modify(t.other.qp, &attr, IB_QP_STATE));
	failed(&t.other, CQE_SYN_WR_FLUSH);
	CHECK(done(&t.master, WQE_OP_WAIT) && done(&t.master, WQE_OP_NOP));
	failed(&t.other, CQE_SYN_WR_FLUSH);
	wait_case_down(&t);
}

static void send_to_itself(struct wait_case *t, uint32_t bytes)
{
	struct device_wqe w;

	device_wqe_begin(&t->other, &w, WQE_OP_SEND, 0, 0);
	device_wqe_data(&w, t->memory, bytes, t->others_key);
	device_wqe_end(&w);
}

static bool received(struct wait_case *t, uint32_t bytes)
{
	const struct cqe64 *cqe = device_cq_poll(&t->other.cq);

	if (!cqe)
		return false;
	CHECK(cqe->op_own >> 4 == CQE_OP_RESP_SEND && be32_get(cqe->byte_cnt) == bytes);
	return true;
}

static void received_in_time(struct wait_case *t, uint32_t bytes)
{
	uint64_t begin = clock_ns();

	while (!received(t, bytes)) {
		adapter_progress(t->device.adapter[0], NULL);
		CHECK(clock_ns() - begin < PATIENCE_NS);
	}
}

/* A slave takes the receives that its master has enabled, round the ring several times, and flushes all. */
static void test_enabling_receives(void)
{
	struct qp_attr attr = {.state = IB_QPS_ERR};
	struct wait_case t;
	uint32_t enabled = 0;

	wait_case_up(&t, IB_QPT_RC, SLAVE_RECEIVES);
	for (unsigned i = 0; i < DEVICE_RECVS; i++)
		device_recv(&t.other, t.memory, 32, t.others_key);
	/* as if there were none: the sender comes again */
	send_to_itself(&t, 8);
	stays_quiet(&t, &t.other, 3000000);
	post_sync(&t.master, WQE_OP_RECEIVE_EN, qp_number(t.other.qp), ++enabled);
	CHECK(done(&t.master, WQE_OP_RECEIVE_EN));
	received_in_time(&t, 8);
	for (unsigned i = 0; i < 3 * DEVICE_RECVS; i++) {
		device_recv(&t.other, t.memory, 32, t.others_key);
		post_sync(&t.master, WQE_OP_RECEIVE_EN, qp_number(t.other.qp), ++enabled);
		CHECK(done(&t.master, WQE_OP_RECEIVE_EN));
		send_to_itself(&t, 9);
		received_in_time(&t, 9);
	}
	send_to_itself(&t, 10);
	stays_quiet(&t, &t.other, 3000000);
	/* all of the ring, and the send */
	CHECK(!qp_modify(t.other.qp, &attr, IB_QP_STATE));
	for (unsigned i = 0; i < DEVICE_RECVS; i++) {
		const struct cqe64 *cqe = device_cq_poll(&t.other.cq);

		CHECK(cqe && cqe->op_own >> 4 >= CQE_OP_REQ_ERR);
	}
	wait_case_down(&t);
}

/* What finds none that is enabled is lost where nothing is sent again. */
static void test_receives_unreliable(void)
{
	struct wait_case t;

	wait_case_up(&t, IB_QPT_UC, SLAVE_RECEIVES);
	device_recv(&t.other, t.memory, 32, t.others_key);
	send_to_itself(&t, 8);
	CHECK(!device_cq_poll(&t.other.cq));
	post_sync(&t.master, WQE_OP_RECEIVE_EN, qp_number(t.other.qp), 1);
	CHECK(done(&t.master, WQE_OP_RECEIVE_EN) && !device_cq_poll(&t.other.cq));
	send_to_itself(&t, 9);
	CHECK(received(&t, 9));
	wait_case_down(&t);
}

/* One of these per queue pair: a refusal is the end of it. */
static void test_refusals(void)
{
	for (unsigned which = 0; which < 14; which++) {
		struct condition c = {WQE_OPMOD_WAIT_DATA, WQE_WAIT_EQUAL, 1, ~0ull};
		uint8_t syndrome = CQE_SYN_LOCAL_QP_OP;
		struct device_qp *q;
		struct wait_case t;

		wait_case_up(&t, IB_QPT_RC, which == 12 ? SLAVE_SENDS : NO_SLAVE);
		q = &t.master;
		switch (which) {
		case 0:
			q = &t.other; /* is no master */
			post_sync(q, WQE_OP_WAIT, cq_number(t.other.cq.cq), 1);
			break;
		case 1:
			post_sync(q, WQE_OP_WAIT, 0x777777, 1);
			break;
		case 2:
			q = &t.other;
			post_sync(q, WQE_OP_SEND_EN, qp_number(t.master.qp), 1);
			break;
		case 3:
			post_sync(q, WQE_OP_SEND_EN, 0x777777, 1);
			break;
		case 4: /* is no slave */
			post_sync(q, WQE_OP_SEND_EN, qp_number(t.other.qp), 1);
			break;
		case 5:
			c.opmod = 3;
			post_wait(&t, &c, t.key, (uintptr_t)t.memory);
			break;
		case 6:
			c.operation = WQE_WAIT_CYCLIC_SMALLER + 1;
			post_wait(&t, &c, t.key, (uintptr_t)t.memory);
			break;
		case 7: /* of the other kind, so too long */
			c.opmod = WQE_OPMOD_WAIT_INDEX;
			post_wait(&t, &c, t.key, (uintptr_t)t.memory);
			break;
		case 8:
			syndrome = CQE_SYN_LOCAL_PROT;
			post_wait(&t, &c, t.key, (uintptr_t)t.memory + 4);
			break;
		case 9:
			syndrome = CQE_SYN_LOCAL_PROT;
			post_wait(&t, &c, t.key, (uintptr_t)t.memory + sizeof(t.memory));
			break;
		case 11: /* no master */
			q = &t.other;
			post_sync(q, WQE_OP_RECEIVE_EN, qp_number(t.other.qp), 1);
			break;
		case 12: /* a slave of the other kind */
			post_sync(q, WQE_OP_RECEIVE_EN, qp_number(t.other.qp), 1);
			break;
		case 13:
			post_sync(q, WQE_OP_RECEIVE_EN, 0x777777, 1);
			break;
		default:
			syndrome = CQE_SYN_LOCAL_PROT;
			post_wait(&t, &c, t.key ^ 0x100, (uintptr_t)t.memory);
			break;
		}
		failed(q, syndrome);
		wait_case_down(&t);
	}
}

int main(void)
{
	test_completions();
	test_ends();
	test_memory();
	test_time();
	test_enabling();
	test_enabling_receives();
	test_receives_unreliable();
	test_refusals();
	return 0;
}
