// SPDX-License-Identifier: BSD-2-Clause
/*
 * Payloads that another process reads from the sender's memory, later than they were sent: side 0
 * writes from its memory to that of side 1, which looks when the test says so.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adapter/memory/mkey_indirect.h"
#include "adapter/qp/qp.h"
#include "base/hazard.h"
#include "signed_pair.h"
#include "test_fault.h"
#include "test_served.h"
#include "wire/channel.h"
#include "exposure/expose.h"

#define BYTES (2 * CHANNEL_REFERENCE_MIN)

static struct signed_pair pair;

static void pair_up(void)
{
	const struct path path = {.src_port = 0, .dst_port = 1};

	signed_pair_up(&pair, true);
	signed_pair_connect(&pair, IB_MTU_1024);
	while (wire_max_payload(pair.device.wire[0], &path, qp_number(pair.side[1].q.qp), 1024,
				true) != CHANNEL_REFERENCE_MAX)
		signed_pair_progress(&pair);
	for (unsigned i = 0; i < SIGNED_PAIR_BYTES; i++)
		pair.side[0].memory[i] = (uint8_t)(i * 7 + i / 251 + 1);
	memset(pair.side[1].memory, 0, SIGNED_PAIR_BYTES);
}

/* One more key of side 0's memory. */
static struct mkey *key_of_all(void)
{
	struct mkey *m;

	(void)device_mr(&pair.device, 0, pair.side[0].q.pdn, pair.side[0].memory, SIGNED_PAIR_BYTES,
			DEVICE_ALL_ACCESS, &m);
	return m;
}

static void post_write(uint32_t lkey)
{
	struct device_wqe w;

	device_wqe_begin(&pair.side[0].q, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)pair.side[1].memory, pair.side[1].lkey);
	device_wqe_data(&w, pair.side[0].memory, BYTES, lkey);
	device_wqe_end(&w);
}

/* Side 1 takes what there is, while side 0 does nothing: it does not send again. */
static bool has_arrived(void)
{
	while (wire_process_progress(pair.process[1].host))
		;
	return !memcmp(pair.side[0].memory, pair.side[1].memory, BYTES);
}

static void expect_written(void)
{
	CHECK(has_arrived());
	CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
	memset(pair.side[1].memory, 0, BYTES);
}

/* What was sent under a key that goes is taken back, and sent again in vain. */
static void expect_taken_back(void)
{
	const struct cqe64_err *err;

	CHECK(!has_arrived());
	err = (const struct cqe64_err *)next(&pair, 0);
	CHECK(err->op_own >> 4 == CQE_OP_REQ_ERR && err->syndrome == CQE_SYN_LOCAL_PROT);
	CHECK(!has_arrived());
}

/* The end of a key touches what was sent under it, not what else lies in its memory. */
static void test_keys_of_one_memory(void)
{
	struct mkey *first, *second;

	pair_up();
	first = key_of_all();
	second = key_of_all();
	post_write(mkey_key(first));
	mkey_destroy(pair.device.adapter[0], second);
	expect_written();
	post_write(mkey_key(first));
	mkey_destroy(pair.device.adapter[0], first);
	expect_taken_back();
	signed_pair_down(&pair);
}

/* Side 0's list: the beginning of its memory in two halves, each under a key of its own. */
static uint32_t list_of(struct mkey *first, struct mkey *second)
{
	struct umr_klm e[2] = {signed_pair_klm(&pair, 0, 0, BYTES / 2),
			       signed_pair_klm(&pair, 0, BYTES / 2, BYTES / 2)};
	struct indirect *k;

	e[0].mkey = be32_of(mkey_key(first));
	e[1].mkey = be32_of(mkey_key(second));
	hazard_enter();
	k = indirect_find(pair.device.adapter[0], pair.side[0].skey);
	CHECK(k);
	spin_lock(&k->lock);
	klm_list_put(&k->list, 0, e, 2);
	CHECK(!klm_list_settle(&k->list));
	k->start = (uintptr_t)pair.side[0].memory;
	k->length = BYTES;
	k->free = false;
	k->generation++;
	spin_unlock(&k->lock);
	hazard_leave();
	return pair.side[0].skey;
}

/* The same for what was sent under a list of keys. */
static void test_list(void)
{
	struct mkey *first, *second, *third;
	uint32_t list;

	pair_up();
	first = key_of_all();
	second = key_of_all();
	third = key_of_all();
	list = list_of(first, second);
	post_write(list);
	mkey_destroy(pair.device.adapter[0], third);
	expect_written();
	post_write(list);
	mkey_destroy(pair.device.adapter[0], second);
	expect_taken_back();
	mkey_destroy(pair.device.adapter[0], first);
	signed_pair_down(&pair);
}

/* Data that stands in the request is gone when the peer looks, so it goes along. */
static void test_inline_and_memory(void)
{
	struct device_wqe w;

	for (uint32_t bytes = BYTES; bytes < SIGNED_PAIR_BYTES; bytes *= 4) {
		pair_up();
		device_wqe_begin(&pair.side[0].q, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_raddr(&w, (uintptr_t)pair.side[1].memory, pair.side[1].lkey);
		device_wqe_inline(&w, pair.side[0].memory, 60);
		device_wqe_data(&w, pair.side[0].memory + 60, bytes - 60, pair.side[0].lkey);
		device_wqe_end(&w);
		CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
		CHECK(!memcmp(pair.side[0].memory, pair.side[1].memory, bytes));
		signed_pair_down(&pair);
	}
}

/* ---- a peer that is reading ---- */

#define READS_MS 300u /* of processor time: far less than after which nobody waits */

static struct {
	pthread_t thread;
	_Atomic(bool) reads, out;
	/* Side 0 has given its request up, and its thread did other things before we were out. */
	bool went_on;
} reader;

static uint64_t ran_ms(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Is in side 0's memory for a while, as far as side 0 can tell. */
static void *reader_reads(void *arg)
{
	struct expose *e = wire_expose(pair.device.wire[0]);
	struct access a;

	CHECK(access_claim(&e->mem->access, &a));
	atomic_store(&reader.reads, true);
	while (ran_ms() < READS_MS)
		;
	/* Nobody else looks before we are out. */
	CHECK(!device_cq_poll(&pair.side[0].q.cq));
	atomic_store(&reader.out, true);
	access_release(&a);
	return arg;
}

static void reader_enter(void)
{
	atomic_store(&reader.reads, false);
	atomic_store(&reader.out, false);
	/* Side 1 is not on its way, as far as side 0 can see. */
	pair.fabric->slots[1].pid = 0;
	CHECK(!pthread_create(&reader.thread, NULL, reader_reads, NULL));
	while (!atomic_load(&reader.reads))
		usleep(1000);
}

/* Side 0 has sent something by reference, and its peer is at it. */
static void reader_begin(void)
{
	pair_up();
	post_write(pair.side[0].lkey);
	reader_enter();
}

static void reader_end(void)
{
	CHECK(atomic_load(&reader.out));
	pthread_join(reader.thread, NULL);
	signed_pair_down(&pair);
}

static void expect_syndrome(uint8_t syndrome)
{
	const struct cqe64_err *err = NULL;

	/* Side 1 does nothing. */
	while (!err) {
		(void)wire_process_progress(pair.process[0].host);
		(void)adapter_progress(pair.device.adapter[0], NULL);
		reader.went_on |=
			atomic_load(&pair.side[0].q.qp->comp.given_up) && !atomic_load(&reader.out);
		if (atomic_load(&reader.out))
			err = (const struct cqe64_err *)device_cq_poll(&pair.side[0].q.cq);
	}
	CHECK(err->op_own >> 4 == CQE_OP_REQ_ERR && err->syndrome == syndrome);
}

/* Neither a call nor a completion gives the memory back before the peer is out of it. */
static void test_being_read(void)
{
	const struct qp_attr error = {.state = IB_QPS_ERR}, reset = {.state = IB_QPS_RESET};
	struct mkey *key;

	reader_begin();
	CHECK(!qp_modify(pair.side[0].q.qp, &error, IB_QP_STATE));
	CHECK(atomic_load(&reader.out));
	expect_syndrome(CQE_SYN_WR_FLUSH);
	reader_end();

	reader_begin();
	CHECK(!qp_modify(pair.side[0].q.qp, &reset, IB_QP_STATE));
	reader_end();

	/* retries exhausted; the thread that finds out waits for nobody */
	reader.went_on = false;
	reader_begin();
	expect_syndrome(CQE_SYN_RETRY_EXC);
	CHECK(reader.went_on);
	reader_end();

	pair_up();
	key = key_of_all();
	post_write(mkey_key(key));
	reader_enter();
	mkey_destroy(pair.device.adapter[0], key);
	CHECK(atomic_load(&reader.out));
	expect_syndrome(CQE_SYN_LOCAL_PROT);
	reader_end();
}

/* ---- memory whose faults wait ---- */

static void look_away(void *user)
{
	(void)user;
}

/* The sender has waited for them before a peer reads. */
static void test_own_faults(void)
{
	struct test_served served;
	struct device_wqe w;
	struct mkey *mr;
	uint32_t key;

	if (!test_served_map(&served, BYTES, look_away, NULL)) {
		printf("userfaultfd: %s\n", strerror(errno));
		return;
	}
	pair_up();
	key = device_mr(&pair.device, 0, pair.side[0].q.pdn, served.at, BYTES, DEVICE_ALL_ACCESS,
			&mr);
	memset(pair.side[1].memory, 1, BYTES);
	device_wqe_begin(&pair.side[0].q, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)pair.side[1].memory, pair.side[1].lkey);
	device_wqe_data(&w, served.at, BYTES, key);
	device_wqe_end(&w);
	CHECK(atomic_load(&served.faults) == BYTES / 4096);
	CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
	for (unsigned i = 0; i < BYTES; i++)
		CHECK(!pair.side[1].memory[i]);
	mkey_destroy(pair.device.adapter[0], mr);
	test_served_unmap(&served);
	signed_pair_down(&pair);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_fault_catch();
	test_own_faults();
	test_being_read();
	test_inline_and_memory();
	test_keys_of_one_memory();
	test_list();
	return 0;
}
