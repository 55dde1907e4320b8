// SPDX-License-Identifier: BSD-2-Clause
#include "keyed_pair.h"

#include <stdlib.h>
#include <string.h>

#include "adapter/qp/qp.h"
#include "base/hazard.h"

void keyed_pair_up(struct keyed_pair *t)
{
	memset(t, 0, sizeof(*t));
	device_up(&t->device);
	device_qp_up(&t->device, 0, &t->a, IB_QPT_RC);
	device_qp_up(&t->device, 0, &t->b, IB_QPT_RC);
	device_connect(&t->device, 0, &t->a, &t->b);
	t->src = malloc(KEYED_PAIR_BYTES);
	t->dst = malloc(KEYED_PAIR_BYTES);
	CHECK(t->src && t->dst);
	for (unsigned i = 0; i < KEYED_PAIR_BYTES; i++)
		t->src[i] = (uint8_t)(i * 11 + i / 256 + 3);
	memset(t->dst, 0xee, KEYED_PAIR_BYTES);
	t->lkey = device_mr(&t->device, 0, t->a.pdn, t->src, KEYED_PAIR_BYTES, DEVICE_ALL_ACCESS,
			    &t->ma);
	t->rkey = device_mr(&t->device, 0, t->b.pdn, t->dst, KEYED_PAIR_BYTES, DEVICE_ALL_ACCESS,
			    &t->mb);
}

void keyed_pair_down(struct keyed_pair *t)
{
	device_qp_down(&t->a);
	device_qp_down(&t->b);
	if (t->list)
		mkey_destroy(t->device.adapter[0], t->list);
	mkey_destroy(t->device.adapter[0], t->mb);
	mkey_destroy(t->device.adapter[0], t->ma);
	device_down(&t->device);
	free(t->src);
	free(t->dst);
}

struct umr_klm klm(uint32_t bytes, uint32_t key, const void *addr)
{
	return (struct umr_klm){be32_of(bytes), be32_of(key), be64_of((uintptr_t)addr)};
}

struct mkey_indirect_attr plain(uint32_t pdn, const struct umr_klm *e, uint32_t n, uint64_t length)
{
	return (struct mkey_indirect_attr){
		.pdn = pdn,
		.access = DEVICE_ALL_ACCESS,
		.local_read = true,
		.variant = 0x5a,
		.qpn = MKEY_ANY_QPN,
		.umr = true,
		.length = length,
		.max_entries = n > 8 ? n : 8,
		.entries = n,
		.entry = e,
	};
}

void make(struct keyed_pair *t, const struct mkey_indirect_attr *attr)
{
	if (t->list)
		mkey_destroy(t->device.adapter[0], t->list);
	CHECK(!mkey_create_indirect(t->device.adapter[0], attr, &t->list));
	t->key = mkey_key(t->list);
}

void keyed_pair_rdma(struct device_qp *q, uint8_t opcode, uint64_t raddr, uint32_t rkey,
		     uint64_t laddr, uint32_t lkey, uint32_t len)
{
	struct device_wqe w;

	device_wqe_begin(q, &w, opcode, SIGNALED, 0);
	device_wqe_raddr(&w, raddr, rkey);
	device_wqe_data(&w, (void *)(uintptr_t)laddr, len, lkey);
	device_wqe_end(&w);
}

void keyed_pair_send(struct device_qp *q, uint64_t laddr, uint32_t lkey, uint32_t len)
{
	struct device_wqe w;

	device_wqe_begin(q, &w, WQE_OP_SEND, SIGNALED, 0);
	device_wqe_data(&w, (void *)(uintptr_t)laddr, len, lkey);
	device_wqe_end(&w);
}

uint8_t outcome(struct device_qp *q)
{
	const struct cqe64 *c = device_cq_poll(&q->cq);

	CHECK(c);
	switch (c->op_own >> 4) {
	case CQE_OP_REQ_ERR:
	case CQE_OP_RESP_ERR:
		return ((const struct cqe64_err *)c)->syndrome;
	default:
		return 0;
	}
}

enum mkey_verdict verdict(struct keyed_pair *t, uint32_t key, uint64_t va, uint64_t len)
{
	const struct mkey_use u = qp_remote_use(t->b.qp, key, t->b.pdn, IB_ACCESS_REMOTE_WRITE);
	enum mkey_verdict v;
	struct runs runs;

	runs_begin(&runs);
	hazard_enter();
	v = mkey_resolve(t->device.adapter[0], &u, va, len, &runs);
	hazard_leave();
	return v;
}

struct change configure(const struct umr_klm *e, uint32_t n, uint64_t length)
{
	struct change c = {
		.ctrl = {.flags = UMR_INLINE,
			 .klm_octowords = be16_of((uint16_t)align_up(n, 4)),
			 .mkey_mask = be64_of(UMR_MASK_FREE | UMR_MASK_MKEY | UMR_MASK_LEN |
					      MASK_RIGHTS)},
		.context = {.access = CTX_ALL,
			    .qpn_mkey = be32_of(0xffffff5a),
			    .len = be64_of(length)},
		.entries = (uint32_t)align_up(n, 4),
	};

	memcpy(c.entry, e, n * sizeof(*e));
	return c;
}

void post(struct device_qp *q, uint32_t key, const struct change *c)
{
	struct device_wqe w;

	device_wqe_begin(q, &w, WQE_OP_UMR, SIGNALED, key);
	memcpy(w.bytes + w.at, &c->ctrl, sizeof(c->ctrl));
	w.at += sizeof(c->ctrl);
	memcpy(w.bytes + w.at, &c->context, sizeof(c->context));
	w.at += sizeof(c->context);
	memcpy(w.bytes + w.at, c->entry, c->entries * sizeof(c->entry[0]));
	w.at += c->entries * (uint32_t)sizeof(c->entry[0]);
	if (c->bsf) {
		memcpy(w.bytes + w.at, c->bsf, BSF_BYTES);
		w.at += BSF_BYTES;
	}
	device_wqe_end(&w);
}

uint8_t change(struct keyed_pair *t, const struct change *c)
{
	post(&t->b, t->key, c);
	return outcome(&t->b);
}

struct mkey_indirect_attr empty(uint32_t pdn)
{
	return (struct mkey_indirect_attr){
		.pdn = pdn,
		.local_read = true,
		.qpn = MKEY_ANY_QPN,
		.free = true,
		.umr = true,
		.max_entries = 8,
	};
}

struct umr_klm header(uint32_t bytes, uint32_t repeat, uint16_t entries)
{
	const struct umr_stride_header h = {.byte_count = be32_of(bytes),
					    .op = be32_of(UMR_STRIDED),
					    .repeat_count = be32_of(repeat),
					    .entries = be16_of(entries)};
	struct umr_klm k;

	memcpy(&k, &h, sizeof(k));
	return k;
}

struct umr_klm stride(uint16_t step, uint16_t bytes, uint32_t key, const void *addr)
{
	const struct umr_stride s = {be16_of(step), be16_of(bytes), be32_of(key),
				     be64_of((uintptr_t)addr)};
	struct umr_klm k;

	memcpy(&k, &s, sizeof(k));
	return k;
}

uint8_t write_through(struct keyed_pair *t, uint32_t key, uint64_t at, uint32_t len)
{
	keyed_pair_rdma(&t->a, WQE_OP_RDMA_WRITE, at, key, (uintptr_t)t->src, t->lkey, len);
	return outcome(&t->a);
}

void keyed_pair_with_empty(struct keyed_pair *t)
{
	struct mkey_indirect_attr attr;

	keyed_pair_up(t);
	attr = empty(t->b.pdn);
	make(t, &attr);
}

struct change of_b(const struct keyed_pair *t, uint32_t len)
{
	const struct umr_klm e = klm(len, t->rkey, t->dst);

	return configure(&e, 1, len);
}
