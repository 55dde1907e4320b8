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
	struct mkey *region;
	uint32_t key;
};

static void wait_case_up(struct wait_case *t, enum ib_qp_type type, bool slave)
{
	memset(t->memory, 0, sizeof(t->memory));
	device_up(&t->device);
	t->device.master = true;
	device_qp_up(&t->device, 0, &t->master, type);
	t->device.master = false;
	t->device.slave_send = slave;
	device_qp_up(&t->device, 0, &t->other, type);
	device_connect(&t->device, 0, &t->master, &t->master);
	device_connect(&t->device, 0, &t->other, &t->other);
	t->key = device_mr(&t->device, 0, t->master.pdn, t->memory, sizeof(t->memory), 0,
			   &t->region);
}

static void wait_case_down(struct wait_case *t)
{
	device_qp_down(&t->master);
	device_qp_down(&t->other);
	mkey_destroy(t->device.adapter[0], t->region);
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
		wait_case_up(&t, types[i], false);
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

	wait_case_up(&t, IB_QPT_RC, false);
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
	wait_case_up(&t, IB_QPT_RC, false);
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
		wait_case_up(&t, IB_QPT_RC, false);
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

	wait_case_up(&t, IB_QPT_RC, false);
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

	wait_case_up(&t, IB_QPT_RC, true);
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

/* One of these per queue pair: a refusal is the end of it. */
static void test_refusals(void)
{
	for (unsigned which = 0; which < 11; which++) {
		struct condition c = {WQE_OPMOD_WAIT_DATA, WQE_WAIT_EQUAL, 1, ~0ull};
		uint8_t syndrome = CQE_SYN_LOCAL_QP_OP;
		struct device_qp *q;
		struct wait_case t;

		wait_case_up(&t, IB_QPT_RC, false);
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
	test_refusals();
	return 0;
}
