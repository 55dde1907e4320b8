// SPDX-License-Identifier: BSD-2-Clause
#include "adapter_device.h"

#include <stdlib.h>
#include <string.h>

#include "base/hazard.h"
#include "check.h"
#include "test_slots.h"
#include "test_subnet.h"

static int64_t chunk_alloc(void *user, enum number_kind kind)
{
	struct test_device *r = user;
	uint32_t c = ++r->next_chunk;

	if (kind == NUMBER_QPN)
		atomic_store(&r->registry->qpn_slot_plus_1[c], 1);
	return (int64_t)c << REGISTRY_CHUNK_SHIFT;
}

static void on_kick(void *user)
{
	((struct test_device *)user)->kicks++;
}

static void device_up_as(struct test_device *r, bool ethernet)
{
	struct wire_process_attr attr;

	memset(r, 0, sizeof(*r));
	r->registry = calloc(1, sizeof(*r->registry));
	r->slots = test_slots_map();
	CHECK(r->registry);
	r->registry->magic = REGISTRY_MAGIC;
	r->registry->version = REGISTRY_VERSION;
	atomic_store(&r->registry->slot_host_plus_1[0], 1);
	atomic_store(&r->slots[0].alive, 1);
	r->subnet = &r->own_subnet;
	test_subnet_open(r->subnet, 2);
	for (unsigned i = 0; i < 2; i++) {
		test_subnet_port(r->subnet, 0, i, ethernet || i);
		test_subnet_gid(r->subnet, i, (uint8_t)(i + 1), GID_ROCE_V2);
	}
	if (!ethernet)
		test_subnet_lid(r->subnet, 0, 7);

	attr = (struct wire_process_attr){
		.registry = r->registry, .subnet = r->subnet, .slots = r->slots, .slot = 0};
	CHECK(!wire_process_create(&attr, &r->host));
	for (unsigned i = 0; i < 2; i++) {
		struct adapter_attr a = {.number_chunk = chunk_alloc, .kick = on_kick, .user = r};

		CHECK(!wire_create(r->host, i, &r->wire[i]));
		a.wire = r->wire[i];
		CHECK(!adapter_create(&a, &r->adapter[i]));
	}
}

void device_up(struct test_device *r)
{
	device_up_as(r, false);
}

void device_up_ethernet(struct test_device *r)
{
	device_up_as(r, true);
}

void device_down(struct test_device *r)
{
	for (unsigned i = 0; i < 2; i++) {
		adapter_destroy(r->adapter[i]);
		wire_destroy(r->wire[i]);
	}
	wire_process_destroy(r->host);
	test_subnet_close(r->subnet);
	free(r->registry);
	test_slots_unmap(r->slots);
}

static void cq_event(void *user)
{
	((struct device_cq *)user)->events++;
}

static void cq_async(void *user, enum ib_event event)
{
	(void)event;
	((struct device_cq *)user)->async++;
}

void device_cq_up(struct test_device *r, unsigned dev, struct device_cq *cq)
{
	struct cq_attr attr = {
		.buf = cq->ring,
		.entries = DEVICE_CQES,
		.cqe_bytes = CQE_BYTES,
		.dbrec = cq->dbrec,
		.event = r->silent ? NULL : cq_event,
		.async = cq_async,
		.user = cq,
	};

	memset(cq, 0, sizeof(*cq));
	for (unsigned i = 0; i < DEVICE_CQES; i++)
		cq->ring[i].op_own = CQE_OP_INVALID << 4;
	CHECK(!cq_create(r->adapter[dev], &attr, &cq->cq));
}

const struct cqe64 *device_cq_poll(struct device_cq *cq)
{
	const struct cqe64 *cqe = &cq->ring[cq->ci & (DEVICE_CQES - 1)];
	uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);

	if (op_own >> 4 == CQE_OP_INVALID || (op_own & 1) != !!(cq->ci & DEVICE_CQES))
		return NULL;
	cq->ci++;
	__atomic_store_n(&cq->dbrec[DBREC_CQ_CI].raw, be32_of(cq->ci & 0xffffff).raw,
			 __ATOMIC_RELEASE);
	return cqe;
}

static void qp_event(void *user, enum ib_event event)
{
	((struct device_qp *)user)->async[event]++;
}

void device_qp_up(struct test_device *r, unsigned dev, struct device_qp *q, enum ib_qp_type type)
{
	struct qp_create_attr attr;

	memset(q, 0, sizeof(*q));
	q->type = type;
	q->adapter = r->adapter[dev];
	q->region = r->region;
	q->pdn = pd_alloc(r->adapter[dev]);
	device_cq_up(r, dev, &q->cq);
	attr = (struct qp_create_attr){
		.type = type,
		.pdn = q->pdn,
		.send_cq = q->cq.cq,
		.recv_cq = q->cq.cq,
		.sq_buf = q->sq,
		.sq_blocks = DEVICE_BLOCKS,
		.rq_buf = q->rq,
		.rq_wqes = DEVICE_RECVS,
		.rq_wqe_bytes = DEVICE_RQ_BYTES,
		.dbrec = q->dbrec,
		.region = r->region,
		.master = r->master,
		.slave_send = r->slave_send,
		.slave_receive = r->slave_receive,
		.async = qp_event,
		.user = q,
	};
	CHECK(!qp_create(r->adapter[dev], &attr, &q->qp));
}

void device_qp_down(struct device_qp *q)
{
	qp_destroy(q->qp);
	CHECK(!cq_destroy(q->cq.cq));
}

void device_attr(struct test_device *r, unsigned dev, struct device_qp *to, struct qp_attr *attr)
{
	*attr = (struct qp_attr){
		.path_mtu = IB_MTU_1024,
		.qkey = 0x11111111,
		.rq_psn = 0xfffff0,
		.sq_psn = 0xfffff0,
		.dest_qpn = qp_number(to->qp),
		.access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC,
		.ah = {.dlid = dev ? 0 : 7, .is_global = dev, .hop_limit = 64, .port_num = 1},
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.port_num = 1,
		.timeout = 8,
		.retry_cnt = 2,
		.rnr_retry = r->patient ? 7 : 2,
	};
	if (dev)
		attr->ah.dgid = test_subnet_gid_of(r->subnet, dev);
}

static const uint32_t to_init[] = {
	[IB_QPT_RC] = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	[IB_QPT_UC] = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	[IB_QPT_UD] = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY,
};
static const uint32_t to_rtr[] = {
	[IB_QPT_RC] = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		      IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	[IB_QPT_UC] = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN,
	[IB_QPT_UD] = IB_QP_STATE,
};
static const uint32_t to_rts[] = {
	[IB_QPT_RC] = IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
		      IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC,
	[IB_QPT_UC] = IB_QP_STATE | IB_QP_SQ_PSN,
	[IB_QPT_UD] = IB_QP_STATE | IB_QP_SQ_PSN,
};

static void to_state(struct device_qp *q, struct qp_attr *attr, enum ib_qp_state state,
		     const uint32_t *masks)
{
	attr->state = state;
	CHECK(!qp_modify(q->qp, attr, masks[q->type]));
}

void device_qp_ready(struct device_qp *q, struct qp_attr *attr)
{
	to_state(q, attr, IB_QPS_INIT, to_init);
	to_state(q, attr, IB_QPS_RTR, to_rtr);
	to_state(q, attr, IB_QPS_RTS, to_rts);
}

void device_connect(struct test_device *r, unsigned dev, struct device_qp *a, struct device_qp *b)
{
	struct device_qp *const end[2] = {a, b};

	for (unsigned i = 0; i < (a == b ? 1 : 2); i++) {
		struct qp_attr attr;

		device_attr(r, dev, end[!i], &attr);
		device_qp_ready(end[i], &attr);
	}
}

void device_sender_up(struct test_device *r, struct device_qp *q, struct cq *cq)
{
	struct qp_create_attr attr = {
		.type = IB_QPT_UD,
		.pdn = pd_alloc(r->adapter[0]),
		.send_cq = cq,
		.recv_cq = cq,
		.sq_buf = q->sq,
		.sq_blocks = DEVICE_BLOCKS,
		.dbrec = q->dbrec,
	};

	q->type = IB_QPT_UD;
	CHECK(!qp_create(r->adapter[0], &attr, &q->qp));
	device_connect(r, 0, q, q);
}

static void put_bytes(struct device_wqe *w, const void *data, size_t n)
{
	CHECK(w->at + n <= sizeof(w->bytes));
	memcpy(w->bytes + w->at, data, n);
	w->at += (uint32_t)n;
}

void device_wqe_begin(struct device_qp *q, struct device_wqe *w, uint8_t opcode, uint8_t fm_ce_se,
		      uint32_t imm)
{
	struct wqe_ctrl c = {
		.opmod_idx_opcode = be32_of((uint32_t)q->sq_pi << 8 | opcode),
		.fm_ce_se = fm_ce_se,
		.imm = be32_of(imm),
	};

	memset(w, 0, sizeof(*w));
	w->q = q;
	put_bytes(w, &c, sizeof(c));
}

void device_wqe_raddr(struct device_wqe *w, uint64_t va, uint32_t rkey)
{
	struct wqe_raddr r = {.va = be64_of(va), .rkey = be32_of(rkey)};

	put_bytes(w, &r, sizeof(r));
}

void device_wqe_atomic(struct device_wqe *w, uint64_t swap_add, uint64_t compare)
{
	struct wqe_atomic a = {be64_of(swap_add), be64_of(compare)};

	put_bytes(w, &a, sizeof(a));
}

void device_wqe_data(struct device_wqe *w, const void *addr, uint32_t len, uint32_t lkey)
{
	struct wqe_data d = {be32_of(len), be32_of(lkey), be64_of((uintptr_t)addr)};

	put_bytes(w, &d, sizeof(d));
}

void device_wqe_inline(struct device_wqe *w, const void *data, uint32_t len)
{
	be32 head = be32_of(WQE_DATA_INLINE | len);

	put_bytes(w, &head, sizeof(head));
	put_bytes(w, data, len);
	w->at = (uint32_t)align_up(w->at, WQE_UNIT);
}

void device_wqe_put(struct device_wqe *w)
{
	struct device_qp *q = w->q;
	uint32_t ds = w->at / WQE_UNIT;
	uint32_t blocks = div_round_up(w->at, WQE_BLOCK);
	be32 qpn_ds = be32_of(qp_number(q->qp) << 8 | ds);

	memcpy(w->bytes + 4, &qpn_ds, sizeof(qpn_ds));
	for (uint32_t i = 0; i < blocks; i++)
		memcpy(q->sq + (size_t)((q->sq_pi + i) % DEVICE_BLOCKS) * WQE_BLOCK,
		       w->bytes + i * WQE_BLOCK, WQE_BLOCK);
	q->sq_pi = (uint16_t)(q->sq_pi + blocks);
}

void device_ring(struct device_qp *q)
{
	if (q->region) {
		CHECK(qp_bell(q->adapter, q->region, qp_number(q->qp), q->sq_pi));
		return;
	}
	__atomic_store_n(&q->dbrec[DBREC_SEND].raw, be32_of(q->sq_pi).raw, __ATOMIC_RELEASE);
	hazard_enter();
	qp_doorbell(q->qp);
	hazard_leave();
}

void device_wqe_end(struct device_wqe *w)
{
	device_wqe_put(w);
	device_ring(w->q);
}

void device_recv(struct device_qp *q, const void *addr, uint32_t len, uint32_t lkey)
{
	struct wqe_data d[2] = {{be32_of(len), be32_of(lkey), be64_of((uintptr_t)addr)},
				{.lkey = be32_of(WQE_DATA_LKEY_END)}};

	memcpy(q->rq + (size_t)(q->rq_pi % DEVICE_RECVS) * DEVICE_RQ_BYTES, d, sizeof(d));
	q->rq_pi++;
	__atomic_store_n(&q->dbrec[DBREC_RECV].raw, be32_of(q->rq_pi).raw, __ATOMIC_RELEASE);
	qp_recv_posted(q->qp);
}

uint32_t device_mr(struct test_device *r, unsigned dev, uint32_t pdn, void *addr, uint64_t len,
		   uint32_t access, struct mkey **out)
{
	struct mkey_attr attr = {
		.pdn = pdn, .access = access, .iova = (uintptr_t)addr, .length = len, .addr = addr};

	CHECK(!mkey_create(r->adapter[dev], &attr, out));
	return mkey_key(*out);
}
