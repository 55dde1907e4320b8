// SPDX-License-Identifier: BSD-2-Clause
/*
 * Atomics at a peer of another process: where the memory is mapped the initiator executes them alone,
 * once, with the outcome and the counts that packets have.
 */
#include <string.h>
#include <unistd.h>

#include "base/rseq.h"
#include "check.h"
#include "exposed_pair.h"
#include "wire/tap.h"

#define BLOCK_KEY 0x7ffe00u

struct request {
	uint8_t opcode;
	uint64_t swap_add, compare;
	uint32_t key;
	uint64_t va;
};

static void post(struct exposed_pair *p, const struct request *r)
{
	struct device_wqe w;

	device_wqe_begin(&p->from, &w, r->opcode, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, r->va, r->key);
	device_wqe_atomic(&w, r->swap_add, r->compare);
	device_wqe_data(&w, p->source, sizeof(uint64_t), p->source_key);
	device_wqe_end(&w);
}

/* What is in the memory that a requester names for the answer. */
static uint64_t answer(const struct exposed_pair *p)
{
	uint64_t value;

	memcpy(&value, p->source, sizeof(value));
	return value;
}

static uint64_t *place_of(struct exposed_pair *p, uint32_t n)
{
	return (uint64_t *)(void *)p->to->data + n;
}

static struct request add_to(struct exposed_pair *p, uint32_t n, uint64_t add)
{
	return (struct request){.opcode = WQE_OP_ATOMIC_FA,
				.swap_add = add,
				.key = p->target_key,
				.va = (uintptr_t)place_of(p, n)};
}

static struct request swap_at(struct exposed_pair *p, uint32_t n, uint64_t compare, uint64_t swap)
{
	struct request r = add_to(p, n, swap);

	r.opcode = WQE_OP_ATOMIC_CS;
	r.compare = compare;
	return r;
}

/* On other machines all go by packets. */
#ifdef __x86_64__
#define ATOMICS_BYPASS true
#else
#define ATOMICS_BYPASS false
#endif

/* Nothing of the target runs. */
static void expect_alone(struct exposed_pair *p, const struct request *r, uint64_t before)
{
	post(p, r);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(answer(p) == before);
}

static void test_alone(void)
{
	struct exposed_pair *p = exposed_pair_up(KEY_MAPPED);
	struct request r;

	memset(p->to->data, 0, sizeof(p->to->data));
	for (uint64_t i = 0; i < 3ull * DEVICE_CQES; i++) {
		r = add_to(p, 1, 3);
		expect_alone(p, &r, i * 3);
		CHECK(*place_of(p, 1) == (i + 1) * 3 && exposed_pair_msn(p) == i + 1);
	}
	*place_of(p, 2) = 7;
	r = swap_at(p, 2, 6, 100);
	expect_alone(p, &r, 7);
	CHECK(*place_of(p, 2) == 7);
	r = swap_at(p, 2, 7, UINT64_MAX);
	expect_alone(p, &r, 7);
	CHECK(*place_of(p, 2) == UINT64_MAX && !*place_of(p, 3) && !*place_of(p, 0));
	exposed_pair_down(p);
}

/* Memory that is not mapped, and what the responder refuses, goes by packets. */
static void test_by_packets(void)
{
	struct exposed_pair *p = exposed_pair_up(KEY_KERNEL);
	struct request r = add_to(p, 0, 5);

	*place_of(p, 0) = 1;
	post(p, &r);
	CHECK(!device_cq_poll(&p->from.cq) && *place_of(p, 0) == 1);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(answer(p) == 1 && *place_of(p, 0) == 6);
	exposed_pair_down(p);

	p = exposed_pair_up(KEY_MAPPED);
	r = add_to(p, 0, 5);
	r.va += 4;
	*place_of(p, 0) = 1;
	post(p, &r);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ_ERR);
	CHECK(*place_of(p, 0) == 1);
	exposed_pair_down(p);
}

/* A key whose memory is not mapped is looked at now and then: it may have got other memory. */
static void test_other_memory(void)
{
	struct exposed_pair *p = exposed_pair_up(KEY_MAPPED);
	struct expose *e = exposed_pair_expose(p);
	struct key_place *place = &e->mem->keys[(p->target_key >> 8) % EXPOSE_BLOCKS].place;
	struct request r = add_to(p, 0, 1);
	uint64_t before = *place_of(p, 0), packets = 0;

	place->way = KEY_KERNEL;
	for (unsigned i = 0; i < 1000; i++) {
		if (i == 10)
			place->way = KEY_MAPPED;
		post(p, &r);
		if (*place_of(p, 0) == before + i) {
			exposed_pair_progress(p);
			packets++;
		}
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK(answer(p) == before + i && *place_of(p, 0) == before + i + 1);
	}
	CHECK(packets > 10 && packets < 500);
	expect_alone(p, &r, before + 1000);
	exposed_pair_down(p);
}

static void count_one(struct exposed_pair *p, bool observed, uint64_t got[10])
{
	static const enum port_counter c[] = {PORT_XMIT_DATA, PORT_XMIT_PACKETS, PORT_RCV_DATA,
					      PORT_RCV_PACKETS, HW_RX_ATOMIC_REQUESTS};
	struct request r = add_to(p, 0, 1);
	struct tap tap = {.packet = exposed_pair_ignore};
	uint64_t before[10];

	for (unsigned i = 0; i < 10; i++)
		before[i] = exposed_pair_counted(i < 5 ? &p->initiator : &p->target, c[i % 5]);
	if (observed)
		wire_tap_attach(p->initiator.device.host, &tap);
	post(p, &r);
	if (observed) {
		CHECK(!device_cq_poll(&p->from.cq));
		exposed_pair_progress(p);
		wire_tap_detach(p->initiator.device.host, &tap);
	}
	exposed_pair_sent(p, CQE_OP_REQ);
	for (unsigned i = 0; i < 10; i++)
		got[i] = exposed_pair_counted(i < 5 ? &p->initiator : &p->target, c[i % 5]) -
			 before[i];
}

/* The counters cannot tell which way a request went. */
static void test_counters(void)
{
	struct exposed_pair *p = exposed_pair_up(KEY_MAPPED);
	uint64_t by_initiator[10], by_packets[10];

	count_one(p, false, by_initiator);
	count_one(p, true, by_packets);
	CHECK(!memcmp(by_initiator, by_packets, sizeof(by_initiator)));
	CHECK(by_initiator[9] == 1 && !by_initiator[4]);
	exposed_pair_down(p);
}

/* The target's exposure itself under a key whose addresses are offsets. */
static void lay_exposure_open(struct exposed_pair *p)
{
	struct expose *e = exposed_pair_expose(p);
	struct key_block *k = &e->mem->keys[(BLOCK_KEY >> 8) % EXPOSE_BLOCKS];
	uint64_t bytes = sizeof(*e->mem);
	struct segment_ref ref;

	CHECK(!segment_table_add(&e->segments, hidden_keep(dup(e->file.fd)), bytes, &ref));
	*k = e->mem->keys[(p->target_key >> 8) % EXPOSE_BLOCKS];
	k->key = BLOCK_KEY;
	k->iova = 0;
	k->length = bytes;
	k->place = (struct key_place){.way = KEY_MAPPED, .segment = ref};
}

/*
 * The responder goes on by itself just after an atomic was executed, because the atomic changes the
 * responder's own word: the packet that follows does not execute it again.
 */
static void expect_once(uint64_t add)
{
	struct exposed_pair *p = exposed_pair_up(KEY_MAPPED);
	struct qp_block *b = exposed_pair_block(p);
	struct request r = add_to(p, 0, 1);
	uint64_t word;

	lay_exposure_open(p);
	expect_alone(p, &r, *place_of(p, 0));
	word = atomic_load(&b->word);
	CHECK(qp_word_is_open(word));
	r = (struct request){
		.opcode = WQE_OP_ATOMIC_FA,
		.swap_add = add,
		.key = BLOCK_KEY,
		.va = (uintptr_t)&b->word - (uintptr_t)exposed_pair_expose(p)->mem,
	};
	post(p, &r);
	CHECK(!device_cq_poll(&p->from.cq) && atomic_load(&b->word) == word + add);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(answer(p) == word);
	word = (word + add) | QP_WORD_OPEN;
	CHECK(atomic_load(&b->word) ==
	      qp_word_with(word, qp_word_epsn(word) + 1, qp_word_msn(word) + 1));
	/* What the packet said is so of that request alone, whichever way the next ones go. */
	r = add_to(p, 0, 1);
	expect_alone(p, &r, *place_of(p, 0));
	r.va += EXPOSED_PAIR_BYTES;
	post(p, &r);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ_ERR);
	exposed_pair_down(p);
}

static void test_executed_once(void)
{
	/* closed for a while, as for a packet */
	expect_once(0 - QP_WORD_OPEN);
	/* another epoch, as when the program gives a queue pair in SQD another path or P_Key */
	expect_once(QP_WORD_EPOCH_ONE);
}

static void pair_reset(struct device_qp *q)
{
	struct qp_attr reset = {.state = IB_QPS_RESET};

	CHECK(!qp_modify(q->qp, &reset, IB_QP_STATE));
}

/* A responder without resources for them refuses atomics, whatever its access flags and the key allow. */
static void test_no_resources(void)
{
	struct exposed_pair *p = exposed_pair_up(KEY_MAPPED);
	struct request r = add_to(p, 0, 5);
	const struct cqe64 *cqe;

	pair_reset(&p->from);
	pair_reset(&p->to->qp);
	exposed_pair_connect(p, &p->from, &p->to->qp, 1);
	p->takes_reads = 0;
	exposed_pair_connect(p, &p->to->qp, &p->from, 0);
	*place_of(p, 0) = 1;
	post(p, &r);
	exposed_pair_progress(p);
	cqe = device_cq_poll(&p->from.cq);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ_ERR);
	CHECK(((const struct cqe64_err *)(const void *)cqe)->syndrome == CQE_SYN_REM_INVAL_REQ);
	CHECK(*place_of(p, 0) == 1);
	exposed_pair_down(p);
}

int main(void)
{
	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	if (ATOMICS_BYPASS) {
		test_alone();
		test_other_memory();
		test_counters();
		test_executed_once();
		test_no_resources();
	}
	test_by_packets();
	return 0;
}
