// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory windows, bound and invalidated by work requests:
 *
 *     a --- writes through the window's key ---> b, which owns region and window
 *
 * Each rule of the architecture for binding has a case that breaks it and nothing else.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter/memory/window.h"
#include "adapter_device.h"
#include "base/explain.h"
#include "base/hazard.h"
#include "captured.h"
#include "check.h"
#include "prm/wqe.h"
#include "window_breach.h"

#define BYTES	  8192u
#define SIGNALED  WQE_CTRL_CE_ALWAYS
#define CTX_WRITE (MKEY_CTX_ACCESS_REMOTE_WRITE | MKEY_CTX_ACCESS_REMOTE_READ)

struct window_case {
	struct test_device device;
	struct device_qp a, b;
	uint8_t src[BYTES], dst[BYTES];
	struct mkey *ma, *mb;
	uint32_t lkey, region;
	struct window *window;
	uint32_t key; /* of the window, as the last bind made it */
};

static void window_case_up(struct window_case *t, enum window_type type, uint32_t region_access)
{
	memset(t, 0, sizeof(*t));
	device_up(&t->device);
	device_qp_up(&t->device, 0, &t->a, IB_QPT_RC);
	device_qp_up(&t->device, 0, &t->b, IB_QPT_RC);
	device_connect(&t->device, 0, &t->a, &t->b);
	for (unsigned i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i * 11 + 3);
	t->lkey = device_mr(&t->device, 0, t->a.pdn, t->src, BYTES, DEVICE_ALL_ACCESS, &t->ma);
	t->region = device_mr(&t->device, 0, t->b.pdn, t->dst, BYTES, region_access, &t->mb);
	CHECK(!window_create(t->device.adapter[0], t->b.pdn, type, &t->window));
	t->key = window_key(t->window);
}

static void window_case_down(struct window_case *t)
{
	device_qp_down(&t->a);
	device_qp_down(&t->b);
	if (t->window)
		window_destroy(t->device.adapter[0], t->window);
	if (t->mb)
		mkey_destroy(t->device.adapter[0], t->mb);
	mkey_destroy(t->device.adapter[0], t->ma);
	device_down(&t->device);
}

/* A UMR as libmlx5 makes it; a case changes what it wants before it is posted. */
struct request {
	struct umr_ctrl ctrl;
	struct umr_mkey_context context;
	struct umr_klm klm[4];
};

#define MASK_BIND                                                             \
	(UMR_MASK_LEN | UMR_MASK_START_ADDR | UMR_MASK_MKEY | UMR_MASK_FREE | \
	 UMR_MASK_ACCESS_LOCAL_WRITE | UMR_MASK_ACCESS_REMOTE_READ |          \
	 UMR_MASK_ACCESS_REMOTE_WRITE | UMR_MASK_ACCESS_ATOMIC)

static struct request bind_request(const struct window_case *t, const struct device_qp *q,
				   enum window_type type, uint8_t variant, const void *addr,
				   uint64_t len)
{
	uint32_t qpn = type == WINDOW_TYPE_2 ? qp_number(q->qp) : 0xffffff;
	uint64_t mask = MASK_BIND | (type == WINDOW_TYPE_2 ? UMR_MASK_QPN : 0);

	return (struct request){
		.ctrl = {.flags = UMR_INLINE | UMR_TRANSLATION_OFFSET |
				  (type == WINDOW_TYPE_2 ? UMR_CHECK_FREE : 0),
			 .mkey_mask = be64_of(mask)},
		.context = {.access = CTX_WRITE,
			    .qpn_mkey = be32_of(qpn << 8 | variant),
			    .start_addr = be64_of((uintptr_t)addr),
			    .len = be64_of(len)},
		.klm = {{be32_of((uint32_t)len), be32_of(t->region), be64_of((uintptr_t)addr)}},
	};
}

static struct request free_request(enum window_type type)
{
	uint64_t mask = UMR_MASK_MKEY | UMR_MASK_FREE | (type == WINDOW_TYPE_2 ? UMR_MASK_QPN : 0);

	return (struct request){
		.ctrl = {.flags = UMR_INLINE | UMR_TRANSLATION_OFFSET |
				  (type == WINDOW_TYPE_2 ? UMR_CHECK_QPN : 0),
			 .mkey_mask = be64_of(mask)},
		.context = {.free = MKEY_CTX_FREE, .qpn_mkey = be32_of(0xffffff00)},
	};
}

static void post_request(struct device_qp *q, uint32_t key, const struct request *r, size_t bytes)
{
	struct device_wqe w;

	device_wqe_begin(q, &w, WQE_OP_UMR, SIGNALED, key);
	memcpy(w.bytes + w.at, r, bytes);
	w.at += (uint32_t)bytes;
	device_wqe_end(&w);
}

static const struct cqe64 *next_completion(struct device_qp *q)
{
	const struct cqe64 *c = device_cq_poll(&q->cq);

	CHECK(c);
	return c;
}

static void expect_ok(struct device_qp *q, uint8_t opcode)
{
	const struct cqe64 *c = next_completion(q);

	CHECK(c->op_own >> 4 == CQE_OP_REQ);
	CHECK(be32_get(c->sop_drop_qpn) == ((uint32_t)opcode << 24 | qp_number(q->qp)));
}

static void expect_error(struct device_qp *q, enum cqe_opcode op, uint8_t syndrome)
{
	const struct cqe64_err *e = (const struct cqe64_err *)next_completion(q);

	CHECK(e->op_own >> 4 == op);
	CHECK(e->syndrome == syndrome);
}

static void bind_ok(struct window_case *t, enum window_type type, void *addr, uint64_t len)
{
	uint32_t key = (t->key & ~0xffu) | ((t->key + 1) & 0xff);
	struct request r = bind_request(t, &t->b, type, (uint8_t)key, addr, len);

	post_request(&t->b, t->key, &r, sizeof(r));
	expect_ok(&t->b, WQE_OP_UMR);
	t->key = key;
}

static void unbind_ok(struct window_case *t)
{
	struct request none = free_request(WINDOW_TYPE_1);

	post_request(&t->b, t->key, &none, sizeof(none.ctrl) + sizeof(none.context));
	expect_ok(&t->b, WQE_OP_UMR);
}

static void write_through(struct window_case *t, uint32_t key, void *to, uint32_t len)
{
	struct device_wqe w;

	device_wqe_begin(&t->a, &w, WQE_OP_RDMA_WRITE, SIGNALED, 0);
	device_wqe_raddr(&w, (uintptr_t)to, key);
	device_wqe_data(&w, t->src, len, t->lkey);
	device_wqe_end(&w);
}

static void write_ok(struct window_case *t, uint8_t *to, uint32_t len)
{
	memset(t->dst, 0, BYTES);
	write_through(t, t->key, to, len);
	expect_ok(&t->a, WQE_OP_RDMA_WRITE);
	CHECK(!memcmp(to, t->src, len));
}

static void write_refused(struct window_case *t, uint32_t key, void *to, uint32_t len)
{
	write_through(t, key, to, len);
	expect_error(&t->a, CQE_OP_REQ_ERR, CQE_SYN_REM_ACCESS);
	CHECK(t->b.async[IB_EVENT_QP_ACCESS_ERR] == 1);
}

static void test_type_1(void)
{
	struct window_case t;
	uint32_t former;

	window_case_up(&t, WINDOW_TYPE_1, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	bind_ok(&t, WINDOW_TYPE_1, t.dst, 4096);
	write_ok(&t, t.dst + 100, 200);
	/* type 1 is bound anew without being invalidated first */
	former = t.key;
	bind_ok(&t, WINDOW_TYPE_1, t.dst + 4096, 4096);
	write_ok(&t, t.dst + BYTES - 64, 64);
	write_refused(&t, former, t.dst + 4096, 8);
	window_case_down(&t);

	/* a bind of no bytes; twice does no harm */
	window_case_up(&t, WINDOW_TYPE_1, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	bind_ok(&t, WINDOW_TYPE_1, t.dst, BYTES);
	unbind_ok(&t);
	unbind_ok(&t);
	write_refused(&t, t.key, t.dst, 8);
	window_case_down(&t);
}

static void test_type_2(void)
{
	struct window_case t;
	struct request inval = free_request(WINDOW_TYPE_2);

	window_case_up(&t, WINDOW_TYPE_2, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	for (int i = 0; i < 3; i++) {
		bind_ok(&t, WINDOW_TYPE_2, t.dst + 64 * i, 1000);
		write_ok(&t, t.dst + 64 * i, 1000);
		post_request(&t.b, t.key, &inval, sizeof(inval.ctrl) + sizeof(inval.context));
		expect_ok(&t.b, WQE_OP_UMR);
	}
	write_refused(&t, t.key, t.dst, 8);
	window_case_down(&t);
}

static void test_send_with_invalidate(void)
{
	struct window_case t;
	struct device_wqe w;
	const struct cqe64 *c;

	window_case_up(&t, WINDOW_TYPE_2, DEVICE_ALL_ACCESS | IB_ACCESS_MW_BIND);
	bind_ok(&t, WINDOW_TYPE_2, t.dst, 1000);
	device_recv(&t.b, t.dst, 100, t.region);
	device_wqe_begin(&t.a, &w, WQE_OP_SEND_INVAL, SIGNALED, t.key);
	device_wqe_data(&w, t.src, 100, t.lkey);
	device_wqe_end(&w);
	expect_ok(&t.a, WQE_OP_SEND_INVAL);
	c = next_completion(&t.b);
	CHECK(c->op_own >> 4 == CQE_OP_RESP_SEND_INV);
	CHECK(be32_get(c->imm_inval_pkey) == t.key && be32_get(c->byte_cnt) == 100);
	/* free again: only so can it be bound */
	bind_ok(&t, WINDOW_TYPE_2, t.dst, 1000);
	window_case_down(&t);
}

/* What a message may not invalidate: a region, type 1, a stale key. */
static void test_invalidate_refused(void)
{
	for (int what = 0; what < 3; what++) {
		enum window_type type = what == 1 ? WINDOW_TYPE_1 : WINDOW_TYPE_2;
		struct window_case t;
		struct device_wqe w;

		window_case_up(&t, type, DEVICE_ALL_ACCESS | IB_ACCESS_MW_BIND);
		bind_ok(&t, type, t.dst, 1000);
		device_recv(&t.b, t.dst, 100, t.region);
		device_wqe_begin(&t.a, &w, WQE_OP_SEND_INVAL, SIGNALED,
				 what == 0   ? t.region
				 : what == 1 ? t.key
					     : t.key - 1);
		device_wqe_data(&w, t.src, 100, t.lkey);
		device_wqe_end(&w);
		expect_error(&t.b, CQE_OP_RESP_ERR, CQE_SYN_MW_BIND);
		/* class J: the requester is not told */
		CHECK(!device_cq_poll(&t.a.cq));
		window_case_down(&t);
	}
}

/* Outside of the window, and a right that it was not given. */
static void test_limits(void)
{
	struct window_case t;
	struct request r;

	window_case_up(&t, WINDOW_TYPE_1, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	bind_ok(&t, WINDOW_TYPE_1, t.dst + 100, 100);
	write_ok(&t, t.dst + 100, 100);
	write_refused(&t, t.key, t.dst + 101, 100);
	window_case_down(&t);

	window_case_up(&t, WINDOW_TYPE_1, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	r = bind_request(&t, &t.b, WINDOW_TYPE_1, 1, t.dst, BYTES);
	r.context.access = MKEY_CTX_ACCESS_REMOTE_READ;
	post_request(&t.b, t.key, &r, sizeof(r));
	expect_ok(&t.b, WQE_OP_UMR);
	write_refused(&t, (t.key & ~0xffu) | 1, t.dst, 8);
	window_case_down(&t);

	/* zero-based: users count from the window's beginning */
	window_case_up(&t, WINDOW_TYPE_2, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	r = bind_request(&t, &t.b, WINDOW_TYPE_2, 1, t.dst + 512, 512);
	r.context.start_addr = be64_of(0);
	post_request(&t.b, t.key, &r, sizeof(r));
	expect_ok(&t.b, WQE_OP_UMR);
	write_through(&t, (t.key & ~0xffu) | 1, (void *)16, 8);
	expect_ok(&t.a, WQE_OP_RDMA_WRITE);
	CHECK(!memcmp(t.dst + 512 + 16, t.src, 8));
	window_case_down(&t);
}

/* b names its window in the lists of its own requests: the kernel makes the key with local read. */
static void test_local_use(void)
{
	static const struct {
		const char *what;
		enum window_type type;
		uint8_t access;	 /* of the bind */
		bool reads;	 /* a READ, which writes to the list */
		bool other_qp;	 /* a names the window of b */
		uint32_t from;	 /* in the window of 4096 bytes */
		uint32_t former; /* a key that it has no more */
		bool ok;
	} cases[] = {
		{"SEND", WINDOW_TYPE_1, CTX_WRITE, .ok = true},
		{"SEND without remote rights", WINDOW_TYPE_1, 0, .ok = true},
		{"SEND, last bytes", WINDOW_TYPE_1, 0, .from = 4096 - 64, .ok = true},
		{"SEND, behind the end", WINDOW_TYPE_1, 0, .from = 4096 - 63},
		{"SEND, former key", WINDOW_TYPE_1, 0, .former = 1},
		{"READ", WINDOW_TYPE_1, MKEY_CTX_ACCESS_LOCAL_WRITE, true, .ok = true},
		{"READ without local write", WINDOW_TYPE_1, CTX_WRITE, true},
		{"SEND, type 2", WINDOW_TYPE_2, 0, .ok = true},
		{"READ, type 2", WINDOW_TYPE_2, MKEY_CTX_ACCESS_LOCAL_WRITE, true, .ok = true},
		{"READ, type 2, without local write", WINDOW_TYPE_2, 0, true},
		{"SEND, another QP's window of type 2", WINDOW_TYPE_2, 0, .other_qp = true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct window_case t;
		struct device_qp *user;
		struct device_wqe w;
		struct request r;
		uint8_t op = cases[i].reads ? WQE_OP_RDMA_READ : WQE_OP_SEND;

		window_case_up(&t, cases[i].type, DEVICE_ALL_ACCESS | IB_ACCESS_MW_BIND);
		user = cases[i].other_qp ? &t.a : &t.b;
		r = bind_request(&t, &t.b, cases[i].type, 7, t.dst, 4096);
		r.context.access = cases[i].access;
		post_request(&t.b, t.key, &r, sizeof(r));
		expect_ok(&t.b, WQE_OP_UMR);
		device_recv(user == &t.a ? &t.b : &t.a, t.src, 64,
			    user == &t.a ? t.region : t.lkey);
		device_wqe_begin(user, &w, op, SIGNALED, 0);
		if (cases[i].reads)
			device_wqe_raddr(&w, (uintptr_t)t.src, t.lkey);
		device_wqe_data(&w, t.dst + cases[i].from, 64,
				((t.key & ~0xffu) | 7) + cases[i].former);
		device_wqe_end(&w);
		if (cases[i].ok)
			expect_ok(user, op);
		else
			expect_error(user, CQE_OP_REQ_ERR, CQE_SYN_LOCAL_PROT);
		CHECK(!memcmp(t.dst + cases[i].from, t.src, 64) == cases[i].ok);
		window_case_down(&t);
	}
}

/* Through a key's list a peer could use the window without being counted. */
static void test_not_in_list(void)
{
	struct window_case t;
	struct device_wqe w;
	struct mkey *list;

	window_case_up(&t, WINDOW_TYPE_1, DEVICE_ALL_ACCESS | IB_ACCESS_MW_BIND);
	bind_ok(&t, WINDOW_TYPE_1, t.dst, BYTES);
	const struct umr_klm entry = {be32_of(64), be32_of(t.key), be64_of((uintptr_t)t.dst)};
	const struct mkey_indirect_attr attr = {
		.pdn = t.b.pdn,
		.qpn = MKEY_ANY_QPN,
		.access = DEVICE_ALL_ACCESS,
		.local_read = true,
		.length = 64,
		.list = MKEY_LIST_KLM,
		.entry = &entry,
		.entries = 1,
		.max_entries = 1,
	};
	CHECK(!mkey_create_indirect(t.device.adapter[0], &attr, &list));
	device_wqe_begin(&t.b, &w, WQE_OP_SEND, SIGNALED, 0);
	device_wqe_data(&w, NULL, 64, mkey_key(list));
	device_wqe_end(&w);
	expect_error(&t.b, CQE_OP_REQ_ERR, CQE_SYN_LOCAL_PROT);
	mkey_destroy(t.device.adapter[0], list);
	window_case_down(&t);
}

static void break_rule(struct window_case *t, enum breach what, struct request *r, size_t *bytes)
{
	switch (what) {
	case TOO_SHORT:
		*bytes = sizeof(r->ctrl) + sizeof(r->context) - 16;
		break;
	case NO_KLM:
		*bytes = sizeof(r->ctrl) + sizeof(r->context);
		break;
	case KLM_TOO_SHORT:
		r->klm[0].byte_count = be32_of(99);
		break;
	case NO_LENGTH:
		r->context.len = be64_of(0);
		break;
	case OTHER_QPN:
		r->context.qpn_mkey = be32_of(qp_number(t->a.qp) << 8 | 1);
		break;
	case UNKNOWN_MASK:
		r->ctrl.mkey_mask = be64_of(be64_get(r->ctrl.mkey_mask) | UMR_MASK_BSF_ENABLE);
		break;
	case BSF:
		r->ctrl.bsf_octowords = be16_of(4);
		break;
	default:
		break;
	}
}

static void test_breach(enum breach what)
{
	bool one = what == INVALIDATE_TYPE_1;
	enum window_type type = one ? WINDOW_TYPE_1 : WINDOW_TYPE_2;
	uint32_t access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND;
	size_t bytes = sizeof(struct request);
	struct request r;
	struct window_case t;
	const char *text;
	uint32_t key;

	window_case_up(&t, type, access);
	if (what == BOUND_ALREADY ||
	    (what >= INVALIDATE_STALE && what <= UNBIND_TYPE_2 && what != INVALIDATE_FREE))
		bind_ok(&t, type, t.dst, 100);
	key = what == NO_WINDOW ? t.region : what == INVALIDATE_STALE ? t.key - 1 : t.key;
	if (what >= INVALIDATE_STALE && what <= UNBIND_TYPE_2)
		r = free_request(what == UNBIND_TYPE_2 ? WINDOW_TYPE_1 : WINDOW_TYPE_2);
	else
		r = bind_request(&t, what == OTHER_PD ? &t.a : &t.b,
				 what == OTHER_TYPE ? WINDOW_TYPE_1 : type, 1, t.dst, 100);
	break_rule(&t, what, &r, &bytes);
	explain_on = true;
	capture_begin();
	post_request(what == OTHER_PD ? &t.a : &t.b, key, &r, bytes);
	explain_flush();
	text = capture_end();
	explain_on = false;
	CHECK(captured_count(text, " completes with IBV_WC_") == 1);
	CHECK(strstr(text, breach_said[what]));
	expect_error(what == OTHER_PD ? &t.a : &t.b, CQE_OP_REQ_ERR,
		     what < TOO_SHORT ? CQE_SYN_MW_BIND : CQE_SYN_LOCAL_QP_OP);
	window_case_down(&t);
}

/* Type 2B: another QP of the same domain may not use it. */
static void test_other_qp(void)
{
	struct window_case t;
	struct device_qp c, d;
	struct qp_create_attr attr;

	window_case_up(&t, WINDOW_TYPE_2, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	bind_ok(&t, WINDOW_TYPE_2, t.dst, 1000);
	device_qp_up(&t.device, 0, &c, IB_QPT_RC);
	device_qp_up(&t.device, 0, &d, IB_QPT_RC);
	/* d again, in the domain of b */
	qp_destroy(d.qp);
	attr = (struct qp_create_attr){
		.type = IB_QPT_RC,
		.pdn = t.b.pdn,
		.send_cq = d.cq.cq,
		.recv_cq = d.cq.cq,
		.sq_buf = d.sq,
		.sq_blocks = DEVICE_BLOCKS,
		.dbrec = d.dbrec,
	};
	CHECK(!qp_create(t.device.adapter[0], &attr, &d.qp));
	device_connect(&t.device, 0, &c, &d);
	for (int i = 0; i < 2; i++) {
		/* the region of a is none of c's: its payload goes along inline */
		struct device_wqe w;

		device_wqe_begin(i ? &c : &t.a, &w, WQE_OP_RDMA_WRITE, SIGNALED, 0);
		device_wqe_raddr(&w, (uintptr_t)t.dst, t.key);
		device_wqe_inline(&w, "12345678", 8);
		device_wqe_end(&w);
		if (i)
			expect_error(&c, CQE_OP_REQ_ERR, CQE_SYN_REM_ACCESS);
		else
			expect_ok(&t.a, WQE_OP_RDMA_WRITE);
	}
	device_qp_down(&c);
	device_qp_down(&d);
	window_case_down(&t);
}

/* What a bind does not look at, as on cards: an access finds it. */
static const struct unchecked {
	uint32_t access; /* of the region */
	int64_t from;	 /* where the window begins in the region */
	bool stale;	 /* the region's key has another variant */
	bool ok;	 /* an access to the first 8 bytes of the region */
} unchecked[] = {
	{.access = IB_ACCESS_LOCAL_WRITE, .ok = true}, /* no right to bind */
	{.access = IB_ACCESS_MW_BIND},
	{.access = IB_ACCESS_LOCAL_WRITE, .from = -1, .ok = true},
	{.access = IB_ACCESS_LOCAL_WRITE, .from = BYTES - 7},
	{.access = IB_ACCESS_LOCAL_WRITE, .from = INT64_MIN},
	{.access = IB_ACCESS_LOCAL_WRITE, .stale = true},
};

static void test_unchecked(enum window_type type, const struct unchecked *u)
{
	struct window_case t;
	struct request r;

	window_case_up(&t, type, u->access);
	r = bind_request(&t, &t.b, type, 1, t.dst, 100);
	r.klm[0].va = be64_of((uint64_t)(uintptr_t)t.dst + (uint64_t)u->from);
	r.context.start_addr = r.klm[0].va;
	r.klm[0].mkey = be32_of(t.region ^ u->stale);
	post_request(&t.b, t.key, &r, sizeof(r));
	expect_ok(&t.b, WQE_OP_UMR);
	t.key = (t.key & ~0xffu) | 1;
	if (u->ok)
		write_ok(&t, t.dst, 8);
	/* may lie far outside of any object */
	write_refused(
		&t, t.key,
		(uint8_t *)((uintptr_t)t.dst + (u->ok ? u->from + (u->from ? 0 : 93) : u->from)),
		8);
	window_case_down(&t);
}

/* The region changes and goes under its window. */
static void test_region_goes(void)
{
	struct window_case t;
	struct mkey_attr attr;

	for (int gone = 0; gone < 2; gone++) {
		window_case_up(&t, WINDOW_TYPE_1, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
		attr = (struct mkey_attr){.pdn = t.b.pdn,
					  .access = IB_ACCESS_LOCAL_WRITE,
					  .iova = (uintptr_t)t.dst,
					  .length = 100,
					  .addr = t.dst + 1000};
		bind_ok(&t, WINDOW_TYPE_1, t.dst, 200);
		CHECK(!mkey_modify(t.device.adapter[0], t.mb, &attr));
		write_through(&t, t.key, t.dst, 100);
		expect_ok(&t.a, WQE_OP_RDMA_WRITE);
		CHECK(!memcmp(t.dst + 1000, t.src, 100));
		if (gone)
			mkey_destroy(t.device.adapter[0], t.mb);
		if (gone)
			t.mb = NULL;
		write_refused(&t, t.key, t.dst, gone ? 8 : 101);
		window_case_down(&t);
	}
}

/*
 * One thread binds the window to the lower and to the upper half in turn, two look: what they get
 * is all of one binding or all of the other.
 */
static struct {
	struct window_case subject;
	_Atomic(bool) stop;
} race;

static struct mkey_use use_of(const struct window_case *t, uint32_t key, struct mkey_stay *stay)
{
	return (struct mkey_use){
		.key = key, .pdn = t->b.pdn, .remote = stay, .access = IB_ACCESS_REMOTE_WRITE};
}

static void *look_loop(void *arg)
{
	struct window_case *t = &race.subject;
	struct mkey_stay stay = {0};
	uint64_t seen = 0;

	(void)arg;
	while (!atomic_load(&race.stop) || !seen) {
		for (uint32_t half = 0; half < 2; half++) {
			uint32_t key = (window_key(t->window) & ~0xffu) | half;
			const struct mkey_use u = use_of(t, key, &stay);
			struct runs runs;
			enum mkey_verdict v;

			runs_begin(&runs);
			hazard_enter();
			v = mkey_resolve(t->device.adapter[0], &u, half * 0x100000ull, 64, &runs);
			mkey_stay_end(&stay);
			hazard_leave();
			CHECK(v == MKEY_OK || v == MKEY_NO_KEY);
			if (v == MKEY_OK)
				CHECK(runs.run[0].addr == t->dst + half * (BYTES / 2));
			seen += v == MKEY_OK;
		}
	}
	return NULL;
}

static void test_race(void)
{
	struct window_case *t = &race.subject;
	pthread_t thread[2];

	window_case_up(t, WINDOW_TYPE_1, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, look_loop, NULL));
	for (unsigned i = 0; i < 20000; i++) {
		unsigned half = i & 1;
		struct window_bind b = {
			.key = window_key(t->window),
			.pdn = t->b.pdn,
			.type = WINDOW_TYPE_1,
			.variant = (uint8_t)half,
			.access = IB_ACCESS_REMOTE_WRITE,
			.iova = half * 0x100000ull,
			.length = BYTES / 2,
			.mr_key = t->region,
			.mr_va = (uintptr_t)t->dst + half * (BYTES / 2),
		};

		hazard_enter();
		CHECK(window_bind(t->device.adapter[0], &b));
		hazard_leave();
	}
	atomic_store(&race.stop, true);
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
	window_case_down(t);
}

/* A responder copies by the window: until it has ended, no bind is complete. */
static struct {
	struct window_case subject;
	_Atomic(int) step; /* 1: inside, 2: about to leave */
} visit;

static void *stay_inside(void *arg)
{
	struct window_case *t = arg;
	struct mkey_stay stay = {0};
	const struct mkey_use u = use_of(t, t->key, &stay);
	struct runs runs;

	runs_begin(&runs);
	hazard_enter();
	CHECK(mkey_resolve(t->device.adapter[0], &u, (uintptr_t)t->dst, 64, &runs) == MKEY_OK);
	atomic_store(&visit.step, 1);
	usleep(100000);
	atomic_store(&visit.step, 2);
	mkey_stay_end(&stay);
	hazard_leave();
	return NULL;
}

static void test_visitor(bool unbind)
{
	struct window_case *t = &visit.subject;
	pthread_t thread;

	window_case_up(t, WINDOW_TYPE_1, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	bind_ok(t, WINDOW_TYPE_1, t->dst, 4096);
	atomic_store(&visit.step, 0);
	CHECK(!pthread_create(&thread, NULL, stay_inside, t));
	while (!atomic_load(&visit.step))
		usleep(100);
	unbind ? unbind_ok(t) : bind_ok(t, WINDOW_TYPE_1, t->dst + 4096, 4096);
	CHECK(atomic_load(&visit.step) == 2);
	CHECK(!pthread_join(thread, NULL));
	window_case_down(t);
}

int main(void)
{
	test_type_1();
	test_type_2();
	test_send_with_invalidate();
	test_invalidate_refused();
	test_limits();
	test_local_use();
	test_not_in_list();
	for (enum breach b = 0; b < BREACHES; b++)
		test_breach(b);
	test_other_qp();
	for (size_t i = 0; i < array_size(unchecked); i++) {
		test_unchecked(WINDOW_TYPE_1, &unchecked[i]);
		test_unchecked(WINDOW_TYPE_2, &unchecked[i]);
	}
	test_region_goes();
	test_race();
	test_visitor(false);
	test_visitor(true);
	return 0;
}
