// SPDX-License-Identifier: BSD-2-Clause
/*
 * READs whose answer goes to the places that the request offers, because the initiator does not take
 * packets out of the channel: side 0 reads from side 1 in another process, and looks when the test
 * says so.  The first answers fill the channel, so that those behind them are placed.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adapter/qp/qp.h"
#include "adapter/transport/read_offer.h"
#include "signed_pair.h"
#include "test_fault.h"
#include "exposure/expose.h"

/* More than the channel holds; and what is read behind it. */
#define FIRST  (640u << 10)
#define SECOND (200u << 10)
#define POISON 0x99

static struct signed_pair pair;
static struct rng rng = {2};

static void pair_up(void)
{
	signed_pair_up(&pair, true);
	signed_pair_connect(&pair, IB_MTU_1024);
	for (unsigned i = 0; i < SIGNED_PAIR_BYTES; i++)
		pair.side[1].memory[i] = (uint8_t)(i * 7 + i / 251 + 1);
	memset(pair.side[0].memory, POISON, SIGNED_PAIR_BYTES);
}

struct place {
	uint32_t at, len;
};

/* From byte 'from' under a key of side 1 to places of side 0's memory. */
static void post_read(uint64_t from, uint32_t rkey, const struct place *to, unsigned n,
		      uint32_t lkey)
{
	struct device_wqe w;

	device_wqe_begin(&pair.side[0].q, &w, WQE_OP_RDMA_READ, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, from, rkey);
	for (unsigned i = 0; i < n; i++)
		device_wqe_data(&w, pair.side[0].memory + to[i].at, to[i].len, lkey);
	device_wqe_end(&w);
}

static void post_plain(uint32_t at, uint32_t len, uint32_t rkey, uint32_t lkey)
{
	const struct place to = {at, len};

	post_read((uintptr_t)(pair.side[1].memory + at), rkey, &to, 1, lkey);
}

/* Fills the channel with the answer to a READ of its own. */
static void fill_channel(void)
{
	post_plain(0, FIRST, pair.side[1].lkey, pair.side[0].lkey);
}

/* Side 1 takes what there is and answers; side 0 does nothing. */
static void target_goes_on(void)
{
	for (int i = 0; i < 4; i++) {
		(void)wire_process_progress(pair.process[1].host);
		(void)adapter_progress(pair.device.adapter[1], NULL);
	}
}

static bool is_read(uint32_t at, uint32_t len)
{
	return !memcmp(pair.side[0].memory + at, pair.side[1].memory + at, len);
}

static bool is_untouched(uint32_t at, uint32_t len)
{
	for (uint32_t i = at; i < at + len; i++)
		if (pair.side[0].memory[i] != POISON)
			return false;
	return true;
}

static void expect_done(void)
{
	CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
}

static void expect_syndrome(uint8_t syndrome)
{
	const struct cqe64_err *err = (const struct cqe64_err *)next(&pair, 0);

	CHECK(err->op_own >> 4 == CQE_OP_REQ_ERR && err->syndrome == syndrome);
}

static struct mkey *key_of_all(unsigned side)
{
	struct mkey *m;

	(void)device_mr(&pair.device, side, pair.side[side].q.pdn, pair.side[side].memory,
			SIGNED_PAIR_BYTES, DEVICE_ALL_ACCESS, &m);
	return m;
}

/* ---- what arrives ---- */

static void test_placed(void)
{
	pair_up();
	fill_channel();
	post_plain(FIRST, SECOND, pair.side[1].lkey, pair.side[0].lkey);
	target_goes_on();
	/* before side 0 has looked */
	CHECK(is_read(FIRST, SECOND));
	CHECK(is_untouched(FIRST + SECOND, SIGNED_PAIR_BYTES - FIRST - SECOND));
	CHECK(!device_cq_poll(&pair.side[0].q.cq));
	expect_done();
	CHECK(is_read(0, FIRST));
	expect_done();
	/* Both sides agree where they are. */
	post_plain(FIRST + SECOND, 100, pair.side[1].lkey, pair.side[0].lkey);
	expect_done();
	CHECK(is_read(0, FIRST + SECOND + 100) && idle(&pair));
	signed_pair_down(&pair);
}

/* A short one, and one that is behind answers which wait for room, come in packets. */
static void test_in_order(void)
{
	pair_up();
	fill_channel();
	post_plain(FIRST, 1000, pair.side[1].lkey, pair.side[0].lkey);
	target_goes_on();
	CHECK(is_untouched(FIRST, 1000));
	for (unsigned i = 0; i < 2; i++)
		expect_done();
	CHECK(is_read(0, FIRST + 1000) && idle(&pair));
	signed_pair_down(&pair);
}

/* Answers to READs of the same places are put there one after the other, so the last one's stays. */
static void test_same_places(void)
{
	const struct place same[2] = {{0, 100}, {150, SECOND - 100}}, apart = {SECOND + 50, SECOND};
	uint64_t from;

	pair_up();
	from = (uintptr_t)pair.side[1].memory;
	fill_channel();
	post_read(from + FIRST, pair.side[1].lkey, same, 2, pair.side[0].lkey);
	post_read(from, pair.side[1].lkey, &apart, 1, pair.side[0].lkey);
	target_goes_on();
	for (unsigned i = 0; i < 3; i++)
		expect_done();
	CHECK(!memcmp(pair.side[0].memory, pair.side[1].memory + FIRST, 100));
	CHECK(!memcmp(pair.side[0].memory + 100, pair.side[1].memory + 100, 50));
	CHECK(!memcmp(pair.side[0].memory + 150, pair.side[1].memory + FIRST + 100, SECOND - 100));
	CHECK(!memcmp(pair.side[0].memory + SECOND + 50, pair.side[1].memory, SECOND));
	CHECK(idle(&pair));
	signed_pair_down(&pair);
}

/* What is too long to be put in its places asks for none. */
static void test_long(void)
{
	static uint8_t from[READ_PLACE_MAX_BYTES + 1], to[READ_PLACE_MAX_BYTES + 1];
	uint32_t keys[2];
	struct mkey *mr[2];

	pair_up();
	keys[0] = device_mr(&pair.device, 0, pair.side[0].q.pdn, to, sizeof(to), DEVICE_ALL_ACCESS,
			    &mr[0]);
	keys[1] = device_mr(&pair.device, 1, pair.side[1].q.pdn, from, sizeof(from),
			    DEVICE_ALL_ACCESS, &mr[1]);
	memset(from, 0x31, sizeof(from));
	for (uint32_t i = 0; i < 2; i++) {
		struct device_wqe w;

		device_wqe_begin(&pair.side[0].q, &w, WQE_OP_RDMA_READ, WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_raddr(&w, (uintptr_t)from, keys[1]);
		device_wqe_data(&w, to, READ_PLACE_MAX_BYTES + i, keys[0]);
		device_wqe_end(&w);
		CHECK(qp_send_op(pair.side[0].q.qp, i)->offered == !i);
		expect_done();
		CHECK(!memcmp(to, from, READ_PLACE_MAX_BYTES + i));
		memset(to, 0, sizeof(to));
	}
	mkey_destroy(pair.device.adapter[0], mr[0]);
	mkey_destroy(pair.device.adapter[1], mr[1]);
	signed_pair_down(&pair);
}

/* ---- with signatures ---- */

enum { MANY = 1600 };

/* Side 1's memory: blocks with signatures, data of side 1's pattern; 'bad' is one of them or MANY. */
static void sign_all(unsigned bad)
{
	struct umr_klm e = signed_pair_klm(&pair, 1, 0, UNIT * MANY);
	struct sig_config c = crc32(0xf0);

	for (unsigned k = 0; k < MANY; k++) {
		uint8_t *unit = pair.side[1].memory + (size_t)k * UNIT;

		model_signature(&c.side[SIG_MEMORY], k, unit, BLOCK, unit + BLOCK);
		if (k == bad)
			unit[BLOCK] ^= 1;
	}
	signed_pair_sign(&pair, 1, &c, &e, 1, UNIT * MANY);
}

/* Bytes of the stripped stream. */
static bool is_stripped(const uint8_t *got, uint64_t from, uint32_t len)
{
	for (uint64_t i = from; i < from + len; i++)
		if (got[i - from] != pair.side[1].memory[i / BLOCK * UNIT + i % BLOCK])
			return false;
	return true;
}

static void test_signed(void)
{
	const uint32_t first = 1200 * BLOCK, second = 350 * BLOCK;

	for (unsigned bad = 1300; bad <= MANY; bad += MANY - 1300) {
		const struct place to[2] = {{0, first}, {first + 3, second}};

		pair_up();
		sign_all(bad);
		post_read(0, pair.side[1].skey, &to[0], 1, pair.side[0].lkey);
		post_read(first, pair.side[1].skey, &to[1], 1, pair.side[0].lkey);
		target_goes_on();
		CHECK(is_stripped(pair.side[0].memory + first + 3, first, second));
		/* The owner of the key hears of it, once; data arrive all the same. */
		if (bad < MANY)
			expect_error(&pair, 1, bad);
		expect_done();
		expect_done();
		CHECK(is_stripped(pair.side[0].memory, 0, first) && idle(&pair));
		CHECK(is_untouched(first, 3));
		signed_pair_down(&pair);
	}
}

/* ---- against a model ---- */

static uint8_t model[SIGNED_PAIR_BYTES];

/* A READ of random bytes to random places, which follow on the last; also in the model. */
static uint32_t post_random(bool with_signatures, uint32_t at)
{
	uint32_t most = with_signatures ? MANY * BLOCK : SIGNED_PAIR_BYTES, sum = 0;
	unsigned n = 1 + (unsigned)rng_below(&rng, 3);
	uint64_t from;
	struct place to[3];

	for (unsigned i = 0; i < n; i++) {
		to[i].at = at + sum;
		to[i].len = 1 + (uint32_t)rng_below(&rng, rng_below(&rng, 3) ? 90000 : 3000);
		sum += to[i].len;
	}
	from = rng_below(&rng, most - sum);
	for (uint64_t i = from; i < from + sum; i++)
		model[at + (i - from)] =
			pair.side[1].memory[with_signatures ? i / BLOCK * UNIT + i % BLOCK : i];
	if (with_signatures)
		post_read(from, pair.side[1].skey, to, n, pair.side[0].lkey);
	else
		post_read((uintptr_t)(pair.side[1].memory + from), pair.side[1].lkey, to, n,
			  pair.side[0].lkey);
	return sum;
}

static void random_round(bool with_signatures)
{
	unsigned posted = 0;

	memset(pair.side[0].memory, POISON, SIGNED_PAIR_BYTES);
	memset(model, POISON, sizeof(model));
	for (uint32_t at = 0; at < SIGNED_PAIR_BYTES - 270000; posted++) {
		at += post_random(with_signatures, at) + (uint32_t)rng_below(&rng, 20);
		if (!rng_below(&rng, 3))
			target_goes_on();
		if (!rng_below(&rng, 6))
			signed_pair_progress(&pair);
		if (posted % 8 == 7)
			for (unsigned i = 0; i < 8; i++)
				expect_done();
	}
	for (unsigned i = posted % 8; i; i--)
		expect_done();
	CHECK(!memcmp(model, pair.side[0].memory, sizeof(model)));
}

/* A long answer with signatures needs no full channel to be placed; a short one goes through it. */
static void test_signed_at_once(void)
{
	const uint32_t lens[] = {200 * BLOCK, 20 * BLOCK};

	for (unsigned i = 0; i < array_size(lens); i++) {
		const struct place to = {0, lens[i]};

		pair_up();
		sign_all(MANY);
		post_read(0, pair.side[1].skey, &to, 1, pair.side[0].lkey);
		target_goes_on();
		if (!i)
			CHECK(is_stripped(pair.side[0].memory, 0, lens[i]));
		else
			CHECK(is_untouched(0, lens[i]));
		expect_done();
		CHECK(is_stripped(pair.side[0].memory, 0, lens[i]) && idle(&pair));
		signed_pair_down(&pair);
	}
}

static void test_random(void)
{
	pair_up();
	sign_all(MANY);
	for (unsigned i = 0; i < 60; i++)
		random_round(i % 2);
	CHECK(idle(&pair));
	signed_pair_down(&pair);
}

/* ---- what is given up ---- */

/* Keys that end on either side before the target has looked. */
static void test_keys_end(void)
{
	struct mkey *key;

	pair_up();
	key = key_of_all(0);
	fill_channel();
	post_plain(FIRST, SECOND, pair.side[1].lkey, mkey_key(key));
	mkey_destroy(pair.device.adapter[0], key);
	target_goes_on();
	CHECK(is_untouched(FIRST, SECOND));
	expect_done();
	expect_syndrome(CQE_SYN_LOCAL_PROT);
	target_goes_on();
	CHECK(is_read(0, FIRST) && is_untouched(FIRST, SECOND));
	signed_pair_down(&pair);

	pair_up();
	key = key_of_all(1);
	fill_channel();
	post_plain(FIRST, SECOND, mkey_key(key), pair.side[0].lkey);
	mkey_destroy(pair.device.adapter[1], key);
	target_goes_on();
	expect_done();
	expect_syndrome(CQE_SYN_REM_ACCESS);
	CHECK(is_read(0, FIRST) && is_untouched(FIRST, SECOND));
	signed_pair_down(&pair);
}

/* The connection ends before the target has looked, and in the middle of its answers. */
static void test_flushed(void)
{
	const struct qp_attr error = {.state = IB_QPS_ERR};

	pair_up();
	fill_channel();
	post_plain(FIRST, SECOND, pair.side[1].lkey, pair.side[0].lkey);
	CHECK(!qp_modify(pair.side[0].q.qp, &error, IB_QP_STATE));
	expect_syndrome(CQE_SYN_WR_FLUSH);
	expect_syndrome(CQE_SYN_WR_FLUSH);
	target_goes_on();
	CHECK(is_untouched(0, SIGNED_PAIR_BYTES));
	signed_pair_down(&pair);
}

/* A request that is sent again has no places: by the time that it is looked at, the first may have
 * been answered, and the memory be the program's. */
static void test_sent_again(void)
{
	struct qp *qp;

	pair_up();
	qp = pair.side[0].q.qp;
	fill_channel();
	post_plain(FIRST, SECOND, pair.side[1].lkey, pair.side[0].lkey);
	target_goes_on();
	CHECK(is_read(FIRST, SECOND));
	atomic_store(&qp->comp.resend, true);
	qp_kick(qp);
	(void)adapter_progress(pair.device.adapter[0], NULL);
	/* side 0 alone */
	for (unsigned done = 0; done < 2;) {
		(void)wire_process_progress(pair.process[0].host);
		done += device_cq_poll(&pair.side[0].q.cq) != NULL;
		if (!done)
			target_goes_on();
	}
	CHECK(is_read(0, FIRST + SECOND));
	memset(pair.side[0].memory, POISON, SIGNED_PAIR_BYTES);
	CHECK(idle(&pair) && is_untouched(0, SIGNED_PAIR_BYTES));
	post_plain(5, SECOND, pair.side[1].lkey, pair.side[0].lkey);
	expect_done();
	CHECK(is_read(5, SECOND) && is_untouched(0, 5));
	signed_pair_down(&pair);
}

/* Neither has one whose first packet had none. */
static void test_offered_late(void)
{
	_Atomic(uint32_t) *observers;
	struct qp *qp;

	pair_up();
	qp = pair.side[0].q.qp;
	observers = &pair.fabric->slots[0].observers;
	atomic_store(observers, 1);
	post_plain(0, SECOND, pair.side[1].lkey, pair.side[0].lkey);
	atomic_store(observers, 0);
	atomic_store(&qp->comp.resend, true);
	qp_kick(qp);
	(void)adapter_progress(pair.device.adapter[0], NULL);
	CHECK(!qp_send_op(qp, 0)->offered);
	expect_done();
	CHECK(is_read(0, SECOND) && idle(&pair));
	signed_pair_down(&pair);
}

/* ---- a peer that is writing ---- */

#define WRITES_MS 200u /* of processor time: far less than after which nobody waits */

static struct {
	pthread_t thread;
	_Atomic(bool) writes, out;
} writer;

static uint64_t ran_ms(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Is in side 0's memory for a while, as far as side 0 can tell. */
static void *writer_writes(void *arg)
{
	struct expose *e = wire_expose(pair.device.wire[0]);
	struct access a;

	CHECK(access_claim(&e->mem->access, &a));
	atomic_store(&writer.writes, true);
	while (ran_ms() < WRITES_MS)
		;
	/* Nobody else looks before we are out. */
	CHECK(!device_cq_poll(&pair.side[0].q.cq));
	atomic_store(&writer.out, true);
	access_release(&a);
	return arg;
}

static void writer_begin(void)
{
	atomic_store(&writer.writes, false);
	atomic_store(&writer.out, false);
	/* Side 1 is not on its way, as far as side 0 can see. */
	pair.fabric->slots[1].pid = 0;
	CHECK(!pthread_create(&writer.thread, NULL, writer_writes, NULL));
	while (!atomic_load(&writer.writes))
		usleep(1000);
}

/* Neither a call nor a completion gives the memory back before the peer is out of it. */
static void test_being_written(void)
{
	const struct qp_attr error = {.state = IB_QPS_ERR};
	struct mkey *key;

	pair_up();
	post_plain(0, SECOND, pair.side[1].lkey, pair.side[0].lkey);
	writer_begin();
	CHECK(!qp_modify(pair.side[0].q.qp, &error, IB_QP_STATE));
	CHECK(atomic_load(&writer.out));
	pthread_join(writer.thread, NULL);
	expect_syndrome(CQE_SYN_WR_FLUSH);
	signed_pair_down(&pair);

	pair_up();
	key = key_of_all(0);
	post_plain(0, SECOND, pair.side[1].lkey, mkey_key(key));
	writer_begin();
	mkey_destroy(pair.device.adapter[0], key);
	CHECK(atomic_load(&writer.out));
	pthread_join(writer.thread, NULL);
	expect_syndrome(CQE_SYN_LOCAL_PROT);
	signed_pair_down(&pair);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_fault_catch();
	test_placed();
	test_in_order();
	test_same_places();
	test_long();
	test_signed();
	test_signed_at_once();
	test_random();
	test_keys_end();
	test_flushed();
	test_sent_again();
	test_offered_late();
	test_being_written();
	return 0;
}
