// SPDX-License-Identifier: BSD-2-Clause
/* Copies within memory by work requests: what they move, and what each kind of refusal looks
 * like. */
#include <string.h>
#include <sys/mman.h>

#include "adapter_device.h"
#include "check.h"
#include "test_fault.h"

#define BYTES (1u << ADAPTER_LOG_MAX_DMA)

struct mmo_case {
	struct test_device device;
	struct device_qp q;
	uint8_t *src, *dst;
	struct mkey *ms, *md;
};

struct copy {
	uint8_t opmod;
	uint32_t src_key, dst_key;
	uint64_t src, dst;
	uint32_t src_len, dst_len;
	uint32_t tail; /* bytes that the work request is too long */
};

static void *map_memory(void)
{
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void mmo_case_up(struct mmo_case *t, enum ib_qp_type type)
{
	device_up(&t->device);
	device_qp_up(&t->device, 0, &t->q, type);
	device_connect(&t->device, 0, &t->q, &t->q);
	t->src = map_memory();
	t->dst = map_memory();
	for (uint32_t i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i * 7 + (i >> 9));
	/* a source needs no right but to be there */
	(void)device_mr(&t->device, 0, t->q.pdn, t->src, BYTES, 0, &t->ms);
	(void)device_mr(&t->device, 0, t->q.pdn, t->dst, BYTES, IB_ACCESS_LOCAL_WRITE, &t->md);
}

static void mmo_case_down(struct mmo_case *t)
{
	device_qp_down(&t->q);
	mkey_destroy(t->device.adapter[0], t->ms);
	mkey_destroy(t->device.adapter[0], t->md);
	munmap(t->src, BYTES);
	munmap(t->dst, BYTES);
	device_down(&t->device);
}

static struct copy good_copy(struct mmo_case *t, uint32_t len)
{
	return (struct copy){
		.opmod = WQE_OPMOD_MMO_DMA,
		.src_key = mkey_key(t->ms),
		.dst_key = mkey_key(t->md),
		.src = (uintptr_t)t->src,
		.dst = (uintptr_t)t->dst,
		.src_len = len,
		.dst_len = len,
	};
}

static void post_request(struct mmo_case *t, const struct copy *c)
{
	struct device_wqe w;

	device_wqe_begin(&t->q, &w, WQE_OP_MMO, WQE_CTRL_CE_ALWAYS, 0);
	w.bytes[0] = c->opmod;
	w.at += sizeof(struct wqe_mmo);
	device_wqe_data(&w, (void *)(uintptr_t)c->src, c->src_len, c->src_key);
	device_wqe_data(&w, (void *)(uintptr_t)c->dst, c->dst_len, c->dst_key);
	w.at += c->tail;
	device_wqe_end(&w);
}

static void copy_bytes(struct mmo_case *t, uint32_t from, uint32_t to, uint32_t len)
{
	struct copy c = good_copy(t, len);
	const struct cqe64 *cqe;

	memset(t->dst, 0xee, BYTES);
	c.src += from;
	c.dst += to;
	post_request(t, &c);
	cqe = device_cq_poll(&t->q.cq);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ);
	CHECK(be32_get(cqe->sop_drop_qpn) >> 24 == WQE_OP_MMO);
	CHECK(!memcmp(t->dst + to, t->src + from, len));
	CHECK(!to || t->dst[to - 1] == 0xee);
	CHECK(to + len == BYTES || t->dst[to + len] == 0xee);
}

static void expect_refused(const struct copy *c, struct mmo_case *t, uint8_t syndrome)
{
	const struct cqe64_err *cqe;

	memset(t->dst, 0xee, BYTES);
	post_request(t, c);
	cqe = (const struct cqe64_err *)device_cq_poll(&t->q.cq);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ_ERR);
	CHECK(cqe->syndrome == syndrome);
	for (uint32_t i = 0; i < BYTES; i += 511)
		CHECK(t->dst[i] == 0xee);
}

static void test_copies(void)
{
	struct mmo_case t;

	mmo_case_up(&t, IB_QPT_RC);
	copy_bytes(&t, 0, 0, 1);
	copy_bytes(&t, 3, 4097, 5000);
	copy_bytes(&t, 0, 0, BYTES);
	mmo_case_down(&t);
}

/* One of these per queue pair: a refusal is the end of it. */
static void test_refusals(void)
{
	for (unsigned which = 0; which < 12; which++) {
		uint8_t syndrome = CQE_SYN_LOCAL_PROT;
		struct mkey *other;
		struct copy c;
		struct mmo_case t;

		mmo_case_up(&t, which == 11 ? IB_QPT_UD : IB_QPT_RC);
		(void)device_mr(&t.device, 0, pd_alloc(t.device.adapter[0]), t.dst, BYTES,
				IB_ACCESS_LOCAL_WRITE, &other);
		c = good_copy(&t, 4096);
		switch (which) {
		case 0: /* rights of the destination */
			c.dst_key = mkey_key(t.ms);
			c.dst = (uintptr_t)t.src;
			break;
		case 1: /* protection domains */
			c.dst_key = mkey_key(other);
			break;
		case 2:
			c.src_key = mkey_key(other);
			c.src = (uintptr_t)t.dst;
			break;
		case 3: /* ranges */
			c.src += BYTES - 4095;
			break;
		case 4:
			c.dst += BYTES - 4095;
			break;
		case 5:
			c.src_key ^= 0x5500;
			break;
		case 6: /* memory that has gone */
			munmap(t.src, BYTES);
			break;
		case 7:
			c.src_len = c.dst_len = BYTES + 1;
			syndrome = CQE_SYN_LOCAL_LENGTH;
			break;
		case 8:
			c.src_len--;
			syndrome = CQE_SYN_LOCAL_QP_OP;
			break;
		case 9:
			c.opmod = 2;
			syndrome = CQE_SYN_LOCAL_QP_OP;
			break;
		case 10:
			c.tail = WQE_UNIT;
			syndrome = CQE_SYN_LOCAL_QP_OP;
			break;
		default: /* a transport that has not got it */
			syndrome = CQE_SYN_LOCAL_QP_OP;
			break;
		}
		expect_refused(&c, &t, syndrome);
		mkey_destroy(t.device.adapter[0], other);
		mmo_case_down(&t);
	}
}

int main(void)
{
	test_fault_catch();
	test_copies();
	test_refusals();
	return 0;
}
