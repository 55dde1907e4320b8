// SPDX-License-Identifier: BSD-2-Clause
/* See device.h. */
#include "fuzz_device.h"

#include <string.h>

#include "adapter/core/device.h"
#include "adapter/memory/mkey.h"
#include "prm/bsf.h"
#include "prm/wqe.h"
#include "test_subnet.h"

#define PATTERN 0x5a

static const struct {
	size_t bytes; /* of the area */
	size_t off;
	size_t len;
	uint32_t access;
} mr_plan[FUZZ_MRS] = {
	{4 * MEMORY_PAGE, 0, 4 * MEMORY_PAGE,
	 IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
		 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND},
	/* the last bytes before the zone, and the first behind it */
	{MEMORY_PAGE, MEMORY_PAGE - 104, 104, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE},
	{MEMORY_PAGE, 0, 333, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ},
	/* Nobody may write it. */
	{MEMORY_PAGE, 0, MEMORY_PAGE, IB_ACCESS_REMOTE_READ},
	/* Begins at address 0 for those who use it. */
	{MEMORY_PAGE, 64, 1000,
	 IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
		 IB_ACCESS_ZERO_BASED},
};

static bool is_writable(const struct fuzz_mr *m)
{
	return m->access & IB_ACCESS_LOCAL_WRITE;
}

/* ---- once ---- */

static be32 *record_at_page_end(unsigned words)
{
	return (be32 *)(void *)(memory_area(MEMORY_PAGE) + MEMORY_PAGE) - words;
}

static void qp_memory(struct fuzz_qp *q)
{
	q->sq = memory_area((size_t)FUZZ_BLOCKS * WQE_BLOCK);
	q->rq = memory_area((size_t)FUZZ_RECVS * FUZZ_RQ_BYTES);
	q->srq_ring = memory_area((size_t)FUZZ_SRQ_WQES * 128);
	q->cq_ring = memory_area((size_t)FUZZ_CQES * CQE_BYTES);
	q->dbrec = record_at_page_end(2);
	q->cq_dbrec = record_at_page_end(2);
	q->srq_dbrec = record_at_page_end(1);
}

void fuzz_device_init(struct fuzz_device *d)
{
	device_up(&d->device);
	for (unsigned i = 0; i < FUZZ_QPS; i++)
		qp_memory(&d->qp[i]);
	for (unsigned i = 0; i < FUZZ_MRS; i++) {
		struct fuzz_mr *m = &d->mr[i];

		m->area_bytes = mr_plan[i].bytes;
		m->area = memory_area(m->area_bytes);
		m->off = mr_plan[i].off;
		m->len = mr_plan[i].len;
		m->access = mr_plan[i].access;
		memset(m->area, PATTERN, m->area_bytes);
	}
	fuzz_catch_faults(memory_is_gap);
}

/* ---- for each input ---- */

static void on_event(void *user)
{
	(void)user;
}

static void on_async(void *user, enum ib_event event)
{
	(void)user;
	(void)event;
}

/* The first two pieces of it are of regions 0 and 1. */
static void create_list(struct fuzz_device *d, unsigned index)
{
	struct umr_klm entry[2];
	const struct mkey_indirect_attr attr = {
		.pdn = d->pdn,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
			  IB_ACCESS_REMOTE_ATOMIC,
		.local_read = true,
		.variant = FUZZ_WINDOW_VARIANT,
		.qpn = MKEY_ANY_QPN,
		.umr = true,
		.remote_invalidate = true,
		.signature = index == 1,
		.bsf_octowords = index == 1 ? BSF_BYTES / 16 : 0,
		.list = index == 2 ? MKEY_LIST_KSM : MKEY_LIST_KLM,
		.log_entry_bytes = index == 2 ? 12 : 0,
		.length = FUZZ_LIST_BYTES,
		.max_entries = FUZZ_LIST_ROOM,
		.entries = 2,
		.entry = entry,
	};

	for (unsigned i = 0; i < 2; i++)
		entry[i] = (struct umr_klm){be32_of(FUZZ_LIST_BYTES / 2),
					    be32_of(mkey_key(d->mr[i].mkey)),
					    be64_of(fuzz_device_addr(d, i, 0))};
	MUST(!mkey_create_indirect(d->device.adapter[d->dev], &attr, &d->list[index]));
}

/* The address of the first byte, for those who use it. */
static uint64_t mr_iova(const struct fuzz_mr *m)
{
	return m->access & IB_ACCESS_ZERO_BASED ? 0 : (uintptr_t)m->area + m->off;
}

void fuzz_device_begin(struct fuzz_device *d, unsigned dev)
{
	d->dev = dev % 2;
	d->pdn = pd_alloc(d->device.adapter[d->dev]);
	d->xrcdn = xrcd_alloc(d->device.adapter[d->dev]);
	for (unsigned i = 0; i < FUZZ_MRS; i++) {
		struct fuzz_mr *m = &d->mr[i];

		const struct mkey_attr attr = {
			.pdn = d->pdn,
			.access = m->access,
			.iova = mr_iova(m),
			.length = m->len,
			.addr = m->area + m->off,
		};

		MUST(!mkey_create(d->device.adapter[d->dev], &attr, &m->mkey));
	}
	for (unsigned i = 0; i < FUZZ_WINDOWS; i++)
		MUST(!window_create(d->device.adapter[d->dev], d->pdn,
				    i ? WINDOW_TYPE_2 : WINDOW_TYPE_1, &d->window[i]));
	for (unsigned i = 0; i < FUZZ_PSVS; i++)
		MUST(!psv_create(d->device.adapter[d->dev], d->pdn, &d->psv[i]));
	for (unsigned i = 0; i < FUZZ_LISTS; i++)
		create_list(d, i);
}

static void create_srq(struct fuzz_device *d, struct fuzz_qp *q, bool xrc)
{
	struct srq_attr attr = {
		.pdn = d->pdn,
		.buf = q->srq_ring,
		.wqe_count = FUZZ_SRQ_WQES,
		.wqe_bytes = 128,
		.max_sge = 7,
		.limit = 3,
		.dbrec = q->srq_dbrec,
		.async = on_async,
		.xrcdn = xrc ? d->xrcdn : 0,
		.cq = xrc ? q->cq : NULL,
	};

	memset(q->srq_dbrec, 0, sizeof(be32));
	MUST(!srq_create(d->device.adapter[d->dev], &attr, &q->srq));
}

/* In which layout is left to another bit. */
static enum cq_compression compression_of(uint8_t kind)
{
	if (!(kind & FUZZ_COMPRESSED))
		return CQ_PLAIN;
	return kind & FUZZ_LARGE_CQES ? CQ_COMPRESSED_ENHANCED : CQ_COMPRESSED_BASIC;
}

static void create_cq(struct fuzz_device *d, struct fuzz_qp *q, uint8_t kind)
{
	bool large = kind & FUZZ_LARGE_CQES;
	struct cq_attr attr = {
		.buf = q->cq_ring,
		.entries = large ? FUZZ_CQES / 2 : FUZZ_CQES,
		.cqe_bytes = large ? 128 : 64,
		.dbrec = q->cq_dbrec,
		.timestamps = large,
		.compression = compression_of(kind),
		.event = on_event,
		.async = on_async,
	};

	memset(q->cq_ring, 0xf0, (size_t)FUZZ_CQES * CQE_BYTES);
	memset(q->cq_dbrec, 0, 2 * sizeof(be32));
	MUST(!cq_create(d->device.adapter[d->dev], &attr, &q->cq));
}

static enum ib_qp_type type_of(const struct fuzz_device *d, unsigned index, uint8_t kind)
{
	switch (kind % FUZZ_KINDS) {
	case FUZZ_UC:
		return IB_QPT_UC;
	case FUZZ_UD:
	case FUZZ_UD_SRQ:
		return IB_QPT_UD;
	case FUZZ_XRC:
		return index & 1 ? IB_QPT_XRC_TGT : IB_QPT_XRC_INI;
	case FUZZ_DC:
		return index & 1 ? IB_QPT_DCT : IB_QPT_DCI;
	case FUZZ_RAW:
		return d->dev ? IB_QPT_RAW_PACKET : IB_QPT_UD;
	default:
		return IB_QPT_RC;
	}
}

void fuzz_device_qp_create(struct fuzz_device *d, unsigned index, uint8_t kind)
{
	struct fuzz_qp *q = &d->qp[index];
	struct qp_create_attr attr = {
		.type = type_of(d, index, kind),
		.pdn = d->pdn,
		.uidx = index,
		.sq_buf = q->sq,
		.sq_blocks = FUZZ_BLOCKS,
		.rq_buf = q->rq,
		.rq_wqes = FUZZ_RECVS,
		.rq_wqe_bytes = FUZZ_RQ_BYTES,
		.dbrec = q->dbrec,
		.sq_sig_all = kind & FUZZ_ALL_SIGNALED,
		.loopback = QP_LOOPBACK_UC | QP_LOOPBACK_MC,
		.async = on_async,
	};
	bool srq = kind % FUZZ_KINDS == FUZZ_RC_SRQ || kind % FUZZ_KINDS == FUZZ_UD_SRQ ||
		   attr.type == IB_QPT_DCT;

	q->type = attr.type;
	q->all_signaled = attr.sq_sig_all;
	q->by_value = kind & FUZZ_BY_VALUE && q->type != IB_QPT_DCT && q->type != IB_QPT_XRC_TGT;
	if (q->by_value) {
		attr.region = FUZZ_REGION;
		attr.multi_packet = q->type == IB_QPT_RAW_PACKET;
		/* the first one is master of the others */
		attr.master = !index;
		attr.slave_send = attr.slave_receive = index == 1 && kind & FUZZ_SLAVE;
	}
	q->sq_pi = q->rq_pi = q->srq_pi = 0;
	memset(q->dbrec, 0, 2 * sizeof(be32));
	create_cq(d, q, kind);
	attr.send_cq = attr.recv_cq = q->cq;
	if (srq || q->type == IB_QPT_XRC_TGT) {
		create_srq(d, q, q->type == IB_QPT_XRC_TGT);
		attr.srq = srq ? q->srq : NULL;
		attr.rq_wqes = 0;
	}
	if (q->type == IB_QPT_XRC_INI) {
		attr.recv_cq = NULL;
		attr.rq_wqes = 0;
	}
	if (q->type == IB_QPT_XRC_TGT) {
		attr.send_cq = attr.recv_cq = NULL;
		attr.sq_blocks = 0;
		attr.pdn = 0;
		attr.xrcdn = d->xrcdn;
	}
	if (q->type == IB_QPT_DCI) {
		attr.recv_cq = NULL;
		attr.rq_wqes = 0;
		attr.dc_streams = true;
		attr.log_dc_errored = 1;
	}
	if (q->type == IB_QPT_DCT) {
		attr.send_cq = NULL;
		attr.sq_blocks = 0;
		attr.dc_key = FUZZ_DC_KEY;
	}
	MUST(!qp_create(d->device.adapter[d->dev], &attr, &q->qp));
}

static void read_attributes(struct fuzz_device *d, struct qp_attr *attr, uint32_t dest_qpn,
			    unsigned row, struct input *in)
{
	uint8_t limits = in_u8(in), retry = in_u8(in);

	*attr = (struct qp_attr){
		.path_mtu = (enum ib_mtu)(1 + in_u8(in) % 5),
		.qkey = 0x11111111,
		.rq_psn = 0xfffff0,
		.sq_psn = 0xfffff0,
		.dest_qpn = dest_qpn,
		.access = in_u8(in) ^ 0xff,
		.ah = {.dlid = row ? 0 : 7,
		       .is_global = row || retry & 128,
		       .dgid = test_subnet_gid_of(d->device.subnet, row),
		       .hop_limit = 64,
		       .port_num = 1},
		.max_rd_atomic = limits & 15,
		.max_dest_rd_atomic = limits >> 4,
		.min_rnr_timer = 1,
		.port_num = 1,
		.timeout = retry & 3,
		.retry_cnt = retry >> 2 & 1,
		.rnr_retry = retry >> 3 & 7,
	};
}

void fuzz_device_qp_connect(struct fuzz_device *d, unsigned index, uint32_t dest_qpn, unsigned row,
			    struct input *in)
{
	enum {
		INIT = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT,
		RTR = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN,
		RTS = IB_QP_STATE | IB_QP_SQ_PSN,
		RC_RTS = RTS | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			 IB_QP_MAX_QP_RD_ATOMIC,
		RESPONDER = IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	};
	static const uint32_t masks[][3] = {
		[IB_QPT_RC] = {INIT | IB_QP_ACCESS_FLAGS, RTR | RESPONDER, RC_RTS},
		[IB_QPT_UC] = {INIT | IB_QP_ACCESS_FLAGS, RTR, RTS},
		[IB_QPT_UD] = {INIT | IB_QP_QKEY, IB_QP_STATE, RTS},
		[IB_QPT_RAW_PACKET] = {IB_QP_STATE | IB_QP_PORT, IB_QP_STATE, IB_QP_STATE},
		[IB_QPT_XRC_INI] = {INIT | IB_QP_ACCESS_FLAGS, RTR, RC_RTS},
		[IB_QPT_XRC_TGT] = {INIT | IB_QP_ACCESS_FLAGS, RTR | RESPONDER,
				    RTS | IB_QP_TIMEOUT},
		[IB_QPT_DCI] = {INIT, IB_QP_STATE | IB_QP_PATH_MTU, RC_RTS},
		[IB_QPT_DCT] = {INIT | IB_QP_ACCESS_FLAGS,
				IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_MIN_RNR_TIMER, 0},
	};
	static const enum ib_qp_state states[] = {IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS};
	struct fuzz_qp *q = &d->qp[index];
	struct qp_attr attr;

	read_attributes(d, &attr, dest_qpn, row, in);
	for (unsigned i = 0; i < array_size(states); i++) {
		/* a DCT ends in RTR */
		if (!masks[q->type][i])
			break;
		attr.state = states[i];
		MUST(!qp_modify(q->qp, &attr, masks[q->type][i]));
	}
}

bool fuzz_device_qp_modify(struct fuzz_device *d, unsigned index, struct input *in)
{
	struct qp_attr attr;
	uint32_t mask = in_u32(in);
	uint8_t states = in_u8(in);

	read_attributes(d, &attr, in_u32(in), d->dev, in);
	attr.state = (enum ib_qp_state)(states & 15);
	attr.cur_state = (enum ib_qp_state)(states >> 4);
	attr.rq_psn = in_u32(in);
	attr.sq_psn = in_u32(in);
	attr.timeout = in_u8(in);
	attr.pkey_index = in_u16(in);
	attr.ah.sgid_index = in_u8(in);
	attr.en_sqd_async_notify = in_u8(in);
	if (qp_modify(d->qp[index].qp, &attr, mask) || !(mask & IB_QP_STATE) ||
	    attr.state != IB_QPS_RESET)
		return false;
	/* A program that resets a QP begins its rings anew, and clears its record, as libmlx5 does. */
	d->qp[index].sq_pi = d->qp[index].rq_pi = 0;
	memset(d->qp[index].dbrec, 0, 2 * sizeof(be32));
	return true;
}

static bool is_list(unsigned index)
{
	return index % FUZZ_KEYS >= FUZZ_MRS + FUZZ_WINDOWS;
}

uint32_t fuzz_device_key(const struct fuzz_device *d, unsigned index)
{
	index %= FUZZ_KEYS;
	if (is_list(index))
		return mkey_key(d->list[index - FUZZ_MRS - FUZZ_WINDOWS]);
	if (index >= FUZZ_MRS)
		return (window_key(d->window[index - FUZZ_MRS]) & ~0xffu) | FUZZ_WINDOW_VARIANT;
	return mkey_key(d->mr[index].mkey);
}

static const struct fuzz_mr *region_of(const struct fuzz_device *d, unsigned index)
{
	index %= FUZZ_KEYS;
	return &d->mr[index < FUZZ_MRS ? index : 0];
}

uint32_t fuzz_device_bytes(const struct fuzz_device *d, unsigned index)
{
	return is_list(index) ? FUZZ_LIST_BYTES : (uint32_t)region_of(d, index)->len;
}

uint64_t fuzz_device_addr(const struct fuzz_device *d, unsigned index, uint32_t off)
{
	const struct fuzz_mr *m = region_of(d, index);

	if (is_list(index))
		return (uint64_t)(int32_t)off;
	return (uint64_t)(int32_t)off + mr_iova(m);
}

void fuzz_device_mr_close(struct fuzz_device *d, unsigned index, bool closed)
{
	struct fuzz_mr *m = &d->mr[index % FUZZ_MRS];

	m->closed = closed;
	memory_close(m->area, closed);
}

/* ---- the end ---- */

static void must_be_pattern(const uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		MUST(at[i] == PATTERN);
}

static void check_mr(struct fuzz_device *d, unsigned index)
{
	struct fuzz_mr *m = &d->mr[index];

	fuzz_device_mr_close(d, index, false);
	must_be_pattern(m->area, m->off);
	must_be_pattern(m->area + m->off + m->len, m->area_bytes - m->off - m->len);
	if (is_writable(m))
		memset(m->area + m->off, PATTERN, m->len);
	else
		must_be_pattern(m->area + m->off, m->len);
	mkey_destroy(d->device.adapter[d->dev], m->mkey);
}

/* But for what the device itself keeps once it was asked for it. */
static void must_be_unused(const struct number_space *s, uint32_t kept)
{
	MUST(s->capacity - s->count <= kept);
}

void fuzz_device_end(struct fuzz_device *d)
{
	struct adapter *a = d->device.adapter[d->dev];

	for (unsigned i = 0; i < FUZZ_FLOWS; i++) {
		if (d->flow[i])
			flow_destroy(d->flow[i]);
		d->flow[i] = NULL;
	}
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		struct fuzz_qp *q = &d->qp[i];

		if (q->qp)
			qp_destroy(q->qp);
		if (q->srq)
			MUST(!srq_destroy(q->srq));
		if (q->cq)
			MUST(!cq_destroy(q->cq));
		q->qp = NULL;
		q->srq = NULL;
		q->cq = NULL;
	}
	/* in any order: what names them is refused from then on */
	for (unsigned i = 0; i < FUZZ_PSVS; i++)
		psv_destroy(a, d->psv[i]);
	for (unsigned i = 0; i < FUZZ_LISTS; i++)
		mkey_destroy(a, d->list[i]);
	for (unsigned i = 0; i < FUZZ_WINDOWS; i++)
		window_destroy(a, d->window[i]);
	for (unsigned i = 0; i < FUZZ_MRS; i++)
		check_mr(d, i);
	pd_free(a, d->pdn);
	xrcd_free(a, d->xrcdn);
	must_be_unused(&a->qps, 0);
	must_be_unused(&a->srqs, 0);
	must_be_unused(&a->mkeys, 1 /* the null key */);
	must_be_unused(&a->psvs, 0);
	MUST(!a->runq.head && !a->runq.later && !a->timers.root);
}
