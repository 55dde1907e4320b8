// SPDX-License-Identifier: BSD-2-Clause
/* Keys with signatures: what they refuse, two in one transfer, and memory that goes. */
#include <string.h>
#include <sys/mman.h>

#include "signed_pair.h"
#include "test_fault.h"

#define SIGNALED WQE_CTRL_CE_ALWAYS

static void expect_refused(struct signed_pair *t, unsigned side, uint8_t syndrome)
{
	const struct cqe64 *cqe;

	do
		cqe = next(t, side);
	while (cqe_op(cqe) == CQE_OP_SIG_ERR);
	CHECK(cqe_op(cqe) == CQE_OP_REQ_ERR &&
	      ((const struct cqe64_err *)cqe)->syndrome == syndrome);
	while (signed_pair_progress(t), device_cq_poll(&t->side[0].q.cq))
		;
	while (device_cq_poll(&t->side[1].q.cq))
		;
}

static void write_signed(struct signed_pair *t, uint64_t off, uint32_t n)
{
	struct device_wqe w;

	device_wqe_begin(&t->side[0].q, &w, WQE_OP_RDMA_WRITE, SIGNALED, 0);
	device_wqe_raddr(&w, (uintptr_t)t->side[1].memory, t->side[1].lkey);
	device_wqe_data(&w, (void *)(uintptr_t)off, n, t->side[0].skey);
	device_wqe_end(&w);
}

static void write_to_signed(struct signed_pair *t, uint64_t off, uint32_t n)
{
	struct device_wqe w;

	device_wqe_begin(&t->side[1].q, &w, WQE_OP_RDMA_WRITE, SIGNALED, 0);
	device_wqe_raddr(&w, off, t->side[0].skey);
	device_wqe_data(&w, t->side[1].memory, n, t->side[1].lkey);
	device_wqe_end(&w);
}

/* A key's length is the memory's, and the work request's the wire's. */
static void test_bounds(struct signed_pair *t)
{
	static const uint64_t outside[][2] = {
		{0, BLOCK * BLOCKS + 1}, {BLOCK * BLOCKS, 1}, {BLOCK * BLOCKS - 8, 9},
		{UINT64_MAX, 2},	 {UINT64_MAX - 7, 8}, {1ull << 63, BLOCK},
	};

	start(t, false, 0xf0, 0);
	write_signed(t, 0, BLOCK * BLOCKS);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && idle(t));
	for (unsigned i = 0; i < array_size(outside); i++) {
		start(t, false, 0xf0, 0);
		write_signed(t, outside[i][0], (uint32_t)outside[i][1]);
		expect_refused(t, 0, CQE_SYN_LOCAL_PROT);
		CHECK(t->side[1].memory[0] == 0xee);
		start(t, false, 0xf0, 0);
		write_to_signed(t, outside[i][0], (uint32_t)outside[i][1]);
		expect_refused(t, 1, CQE_SYN_REM_ACCESS);
	}
}

static void no_atomics(struct signed_pair *t)
{
	struct device_wqe w;

	start(t, false, 0xf0, 0);
	device_wqe_begin(&t->side[1].q, &w, WQE_OP_ATOMIC_FA, SIGNALED, 0);
	device_wqe_raddr(&w, 0, t->side[0].skey);
	device_wqe_atomic(&w, 1, 0);
	device_wqe_data(&w, t->side[1].memory, 8, t->side[1].lkey);
	device_wqe_end(&w);
	expect_refused(t, 1, CQE_SYN_REM_ACCESS);
	start(t, false, 0xf0, 0);
	device_wqe_begin(&t->side[0].q, &w, WQE_OP_ATOMIC_FA, SIGNALED, 0);
	device_wqe_raddr(&w, (uintptr_t)t->side[1].memory, t->side[1].lkey);
	device_wqe_atomic(&w, 1, 0);
	device_wqe_data(&w, NULL, 8, t->side[0].skey);
	device_wqe_end(&w);
	expect_refused(t, 0, CQE_SYN_LOCAL_PROT);
	/* its answer was refused, not the atomic */
	CHECK(t->side[1].memory[0] == 0xef);
}

/* Nothing is asked of nothing. */
static void no_bytes(struct signed_pair *t)
{
	start(t, true, 0xf0, 1);
	write_signed(t, 0, 0x80000000u); /* inline, of no bytes */
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && idle(t));
}

/* Both ends change what crosses: CRC32 in memory, T10-DIF on the wire, CRC64 in memory. */
static void both_ends(struct signed_pair *t)
{
	static const struct sig_domain dif = {.type = SIG_T10DIF_CRC,
					      .block = BLOCK,
					      .ref_increment = true,
					      .app_tag = 0x1234,
					      .app_mask = 0xffff,
					      .ref_tag = 77};
	const struct sig_config from = {
		.side = {[SIG_WIRE] = dif,
			 [SIG_MEMORY] = {.type = SIG_CRC32, .block = BLOCK, .seed_ones = true}},
		.check_mask = 0xff,
		.data_bytes = UINT32_MAX};
	const struct sig_config to = {
		.side = {[SIG_WIRE] = dif, [SIG_MEMORY] = {.type = SIG_CRC64_XP10, .block = BLOCK}},
		.check_mask = 0xff,
		.data_bytes = UINT32_MAX};
	const uint32_t wire_bytes = BLOCKS * (BLOCK + 8);
	static uint8_t wire[BLOCKS * (BLOCK + 8)], want[BLOCKS * (BLOCK + 8)];
	struct model_result r[2];

	for (unsigned way = 0; way < 3; way++) {
		struct umr_klm e[2] = {signed_pair_klm(t, 0, 0, BLOCKS * UNIT),
				       signed_pair_klm(t, 1, 0, BLOCKS * (BLOCK + 8))};
		struct device_wqe w;

		signed_pair_connect(t, IB_MTU_512);
		fill(t, 0, 1u << way);
		memset(t->side[1].memory, 0xee, SIGNED_PAIR_BYTES);
		signed_pair_sign(t, 0, &from, &e[0], 1, BLOCKS * UNIT);
		signed_pair_sign(t, 1, &to, &e[1], 1, BLOCKS * (BLOCK + 8));
		model_transfer(&from, SIG_GATHER, wire_bytes, t->side[0].memory, wire, &r[0]);
		model_transfer(&to, SIG_SCATTER, wire_bytes, wire, want, &r[1]);
		CHECK(r[0].errors == 1 && !r[1].errors);
		if (!way)
			device_recv(&t->side[1].q, NULL, wire_bytes, t->side[1].skey);
		if (way < 2)
			device_wqe_begin(&t->side[0].q, &w, way ? WQE_OP_RDMA_WRITE : WQE_OP_SEND,
					 SIGNALED, 0);
		else
			device_wqe_begin(&t->side[1].q, &w, WQE_OP_RDMA_READ, SIGNALED, 0);
		if (way)
			device_wqe_raddr(&w, 0, t->side[way == 1].skey);
		device_wqe_data(&w, NULL, wire_bytes, t->side[way == 2].skey);
		device_wqe_end(&w);
		expect_error(t, 0, way);
		CHECK(cqe_op(next(t, way == 2)) == CQE_OP_REQ);
		if (!way)
			CHECK(cqe_op(next(t, 1)) == CQE_OP_RESP_SEND);
		CHECK(!memcmp(t->side[1].memory, want, BLOCKS * (BLOCK + 8)) && idle(t));
	}
}

/* ---- memory that goes ---- */

/* The last page of the key's list is not there; whose fault is it? */
static void test_gone(struct signed_pair *t)
{
	uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sig_config c = crc32(0xf0);
	struct mkey_attr attr = {.pdn = t->side[0].q.pdn,
				 .access = IB_ACCESS_LOCAL_WRITE,
				 .iova = (uintptr_t)p,
				 .length = 8192,
				 .addr = p};
	struct umr_klm e;
	struct mkey *m;

	CHECK(p != MAP_FAILED);
	CHECK(!mkey_create(signed_pair_adapter(t, 0), &attr, &m));
	e = (struct umr_klm){be32_of(8192), be32_of(mkey_key(m)), be64_of((uintptr_t)p)};
	for (unsigned i = 0; i < 3; i++) {
		start(t, false, 0xf0, 0);
		memset(p, 1, 4096);
		signed_pair_sign(t, 0, &c, &e, 1, 8192);
		CHECK(!munmap(p + 4096, 4096));
		if (i == 0) {
			write_signed(t, 0, 10 * BLOCK);
			expect_refused(t, 0, CQE_SYN_LOCAL_PROT);
		} else if (i == 1) {
			write_to_signed(t, 0, 10 * BLOCK);
			expect_refused(t, 1, CQE_SYN_REM_ACCESS);
		} else {
			struct device_wqe w;

			device_wqe_begin(&t->side[1].q, &w, WQE_OP_RDMA_READ, SIGNALED, 0);
			device_wqe_raddr(&w, 0, t->side[0].skey);
			device_wqe_data(&w, t->side[1].memory, 10 * BLOCK, t->side[1].lkey);
			device_wqe_end(&w);
			expect_refused(t, 1, CQE_SYN_REM_ACCESS);
		}
		CHECK(mmap(p + 4096, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + 4096);
	}
	mkey_destroy(signed_pair_adapter(t, 0), m);
	munmap(p, 8192);
}

int main(void)
{
	static struct signed_pair pair;

	test_fault_catch();
	for (int two = 0; two < 2; two++) {
		signed_pair_up(&pair, two);
		test_bounds(&pair);
		no_atomics(&pair);
		no_bytes(&pair);
		both_ends(&pair);
		test_gone(&pair);
		signed_pair_down(&pair);
	}
	return 0;
}
