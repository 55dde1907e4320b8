// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receive queues made by DEVX (the work queues of verbs, with rings and records of an umem), tables
 * of them, and TIRs, which steering rules lead to.  A TIR leads to a receive queue, or spreads
 * frames over a table of receive queues.
 */
#include "driver/devx/raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/ste/icm.h"
#include "base/log.h"
#include "driver/devx/devx.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/wqe.h"

/* ---- receive queues ---- */

#define LOG_STRIDE_MAX 9u /* max_wqe_sz_rq */

struct devx_rq {
	struct devx_obj obj;
	struct wq *wq;
	uint8_t context[RQC_BYTES];
};

static struct wq *devx_wq_of(struct uobj *obj)
{
	if (obj->type == UOBJ_WQ)
		return container_of(obj, struct uwq, uobj)->wq;
	return container_of(obj, struct devx_rq, obj.uobj)->wq;
}

static void devx_rq_on_async(void *user, enum ib_event event)
{
	devx_queue_event(user, event);
}

/* Refuses the features that this device does not have. */
static int devx_rq_check_features(const uint8_t *rqc)
{
	static const struct devx_lack lacks[] = {
		{RQC_RESERVED_KEY, "rlky"},
		{RQC_DELAY_DROP, "delay_drop_en"},
		{RQC_SCATTER_FCS, "scatter_fcs"},
		{RQC_HAIRPIN, "hairpin"},
	};
	int ret = devx_lacks(rqc, lacks);

	if (ret < 0 || prm_get(rqc, RQC_MEMORY) == RQC_OF_RMP)
		return ret;
	if (prm_get(rqc, RQC_MEMORY) != RQC_INLINE)
		return devx_refuse(-EOPNOTSUPP, "mem_rq_type", prm_get(rqc, RQC_MEMORY),
				   "the device has 0 (a ring) and 1 (a pool)");
	return devx_raw_check_ring(rqc + RQC_WQ);
}

static int devx_rq_use_memory(struct devx_call *c, struct devx_rq *rq, struct wq_attr *attr)
{
	const uint8_t *wq = rq->context + RQC_WQ;
	const struct devx_part ring = devx_wq_ring(wq), record = devx_wq_record(wq, sizeof(be32));
	struct uobj *umem;

	attr->buf = devx_umem_part(c->file, &ring, false, &umem);
	if (!attr->buf)
		return -EINVAL;
	devx_obj_uses(&rq->obj, umem);
	attr->dbrec = devx_umem_part(c->file, &record, false, &umem);
	if (!attr->dbrec)
		return -EINVAL;
	devx_obj_uses(&rq->obj, umem);
	return 0;
}

/* Uses a pool in place of a ring, which the context then does not have. */
static int devx_rq_use_pool(struct devx_call *c, struct devx_rq *rq, struct wq_attr *attr)
{
	struct uobj *rmp;

	if (devx_named(c->file, &devx_rmp_class, prm_get32(rq->context, RQC_RMP), "rmpn", &rmp) < 0)
		return -EINVAL;
	devx_obj_uses(&rq->obj, rmp);
	attr->srq = devx_srq_of(rmp);
	return 0;
}

static int devx_rq_use_ring(struct devx_call *c, struct devx_rq *rq, struct wq_attr *attr)
{
	const uint8_t *wq = rq->context + RQC_WQ;
	struct uobj *pd;
	int ret = devx_pd(c->file, attr->pdn, &pd);

	if (ret < 0)
		return ret;
	ret = devx_at_most("log_wq_sz", prm_get32(wq, WQ_LOG_SIZE), log2_of(ADAPTER_MAX_QP_WR));
	if (ret == 0)
		ret = devx_at_most("log_wq_stride", prm_get32(wq, WQ_LOG_STRIDE), LOG_STRIDE_MAX);
	if (ret < 0)
		return ret;
	if (attr->wqe_bytes < sizeof(struct wqe_data))
		return devx_refuse(-EINVAL, "log_wq_stride", prm_get32(wq, WQ_LOG_STRIDE),
				   "a receive has 16 bytes (4) at least");
	devx_obj_uses(&rq->obj, pd);
	return devx_rq_use_memory(c, rq, attr);
}

static const struct devx_class devx_rq_class;

static int devx_rq_make(struct devx_call *c, struct devx_rq *rq)
{
	const uint8_t *rqc = rq->context, *wq = rqc + RQC_WQ;
	struct wq_attr attr = {
		.pdn = prm_get32(wq, WQ_PD),
		.uidx = prm_get32(rqc, RQC_USER_INDEX),
		.wqes = 1u << prm_get32(wq, WQ_LOG_SIZE),
		.wqe_bytes = 1u << prm_get32(wq, WQ_LOG_STRIDE),
		.strip_vlan = !prm_get(rqc, RQC_KEEP_VLAN),
		.silent = !prm_get(rqc, RQC_FLUSH),
		.async = devx_rq_on_async,
		.user = &rq->obj,
	};
	struct uobj *cq = NULL;
	int ret = devx_raw_check_port(c->file);

	if (ret == 0)
		ret = devx_rq_check_features(rqc);
	if (ret == 0)
		ret = devx_named(c->file, &devx_cq_class, prm_get32(rqc, RQC_CQN), "cqn", &cq);
	if (ret < 0)
		return ret;
	if (prm_get(rqc, RQC_STATE) != RAW_STATE_RST)
		return devx_refuse(-EINVAL, "state", prm_get(rqc, RQC_STATE), "it begins with 0");
	devx_obj_uses(&rq->obj, cq);
	attr.cq = devx_cq_of(cq);
	ret = prm_get(rqc, RQC_MEMORY) == RQC_OF_RMP ? devx_rq_use_pool(c, rq, &attr)
						     : devx_rq_use_ring(c, rq, &attr);
	if (ret == 0)
		ret = wq_create(c->file->hca->adapter, &attr, &rq->wq);
	if (ret == 0)
		devx_obj_init(&rq->obj, &devx_rq_class, wq_number(rq->wq));
	return ret;
}

static int devx_create_rq(struct devx_call *c, struct devx_obj **out)
{
	struct devx_rq *rq = calloc(1, sizeof(*rq));
	int ret;

	if (!rq)
		return -ENOMEM;
	memcpy(rq->context, c->in + RAW_CONTEXT, sizeof(rq->context));
	ret = devx_rq_make(c, rq);
	if (ret < 0) {
		devx_obj_release(&rq->obj);
		free(rq);
		return ret;
	}
	prm_set(c->out, CMD_OUT_NUMBER, rq->obj.number);
	*out = &rq->obj;
	return 0;
}

static void devx_rq_free(struct devx_obj *obj)
{
	wq_destroy(container_of(obj, struct devx_rq, obj)->wq);
}

static bool devx_rq_is(struct uobj *obj, uint32_t number)
{
	return obj->type == UOBJ_WQ && wq_number(container_of(obj, struct uwq, uobj)->wq) == number;
}

/* Receive queues, which include the work queues of verbs. */
static const struct devx_class devx_rq_class = {
	.is = devx_rq_is, .free = devx_rq_free, .queue = EQE_QUEUE_RQ};

static const enum ib_wq_state wq_states[] = {
	[RAW_STATE_RST] = IB_WQS_RESET, [RAW_STATE_RDY] = IB_WQS_RDY, [RAW_STATE_ERR] = IB_WQS_ERR};

static uint32_t devx_rq_state(struct uobj *obj)
{
	switch (wq_state(devx_wq_of(obj))) {
	case IB_WQS_RESET:
		return RAW_STATE_RST;
	case IB_WQS_RDY:
		return RAW_STATE_RDY;
	default:
		return RAW_STATE_ERR;
	}
}

struct devx_raw_move devx_raw_move_of(const struct devx_call *c)
{
	/* Receive and send queues have their states at the same place in the context. */
	return (struct devx_raw_move){
		.current = prm_get32(c->in, RAW_CURRENT_STATE),
		.next = prm_get32(c->in + RAW_CONTEXT, RQC_STATE),
	};
}

static int devx_modify_rq(struct devx_call *c)
{
	const uint8_t *rqc = c->in + RAW_CONTEXT;
	uint64_t what = prm_get(c->in, RAW_MODIFY_BITMASK);
	struct devx_raw_move move = devx_raw_move_of(c);
	struct wq *wq = devx_wq_of(c->target);
	int ret = 0;

	if (what & ~(uint64_t)(MODIFY_RQ_VLAN | MODIFY_RQ_COUNTER)) {
		log_info("devx: MODIFY_RQ changes state, VLAN stripping and the counter set only");
		return -EOPNOTSUPP;
	}
	if (move.current >= array_size(wq_states) || move.next >= array_size(wq_states) ||
	    move.current == 2 || move.next == 2 || move.current != devx_rq_state(c->target))
		return -EINVAL;
	if (move.next != move.current || move.next != RAW_STATE_RDY)
		ret = wq_modify(wq, wq_states[move.current], wq_states[move.next]);
	if (ret == 0 && what & MODIFY_RQ_VLAN) {
		wq_strip_vlan(wq, !prm_get(rqc, RQC_KEEP_VLAN));
		if (c->target->type == UOBJ_DEVX)
			prm_set(container_of(c->target, struct devx_rq, obj.uobj)->context,
				RQC_KEEP_VLAN, prm_get(rqc, RQC_KEEP_VLAN));
	}
	return ret;
}

static int devx_query_rq(struct devx_call *c)
{
	uint8_t *rqc = c->out + RAW_CONTEXT;

	if (c->target->type == UOBJ_DEVX)
		memcpy(rqc, container_of(c->target, struct devx_rq, obj.uobj)->context, RQC_BYTES);
	prm_set(rqc, RQC_STATE, devx_rq_state(c->target));
	return 0;
}

/* ---- tables of receive queues ---- */

struct devx_rqt {
	struct devx_obj obj;
	uint32_t max, nqueues;
	uint32_t log_size;
	struct uobj **rqs; /* the table uses each of them */
	struct wq **wqs;
	struct devx_tir *tirs;
};

static struct devx_rqt *devx_rqt_of(struct uobj *rqt)
{
	return container_of(rqt, struct devx_rqt, obj.uobj);
}

static struct wq *const *devx_rqt_queues(const struct devx_rqt *rqt, uint32_t *log_size)
{
	*log_size = rqt->log_size;
	return rqt->wqs;
}

/* From now on the table tells the TIR when it changes; after the second call it does not. */
static void devx_rqt_add_tir(struct uobj *rqt, struct devx_tir *tir)
{
	struct devx_rqt *r = devx_rqt_of(rqt);

	tir->next_of_rqt = r->tirs;
	r->tirs = tir;
}

static void devx_rqt_remove_tir(struct devx_tir *tir)
{
	struct devx_tir **at = &tir->rqt->tirs;

	while (*at != tir)
		at = &(*at)->next_of_rqt;
	*at = tir->next_of_rqt;
}

static void rqt_count_users(const struct devx_rqt *rqt, int by)
{
	for (uint32_t i = 0; i < rqt->nqueues; i++)
		rqt->rqs[i]->users += (uint32_t)by;
}

static void rqt_free_lists(struct devx_rqt *rqt)
{
	free(rqt->rqs);
	free((void *)rqt->wqs);
}

/* Reads the list that a context names, which may be shorter than the context says. */
static int rqt_read(struct devx_call *c, struct devx_rqt *rqt)
{
	const uint8_t *rqtc = c->in + RAW_CONTEXT;
	uint32_t n = prm_get32(rqtc, RQTC_ACTUAL);

	if (!is_power_of_two(n) || n > rqt->max ||
	    c->in_len < RQT_FIXED_BYTES + (size_t)n * RQTC_ENTRY_BYTES)
		return -EINVAL;
	rqt->nqueues = n;
	rqt->log_size = log2_of(n);
	rqt->rqs = calloc(n, sizeof(struct uobj *));
	rqt->wqs = (struct wq **)calloc(n, sizeof(struct wq *));
	if (!rqt->rqs || !rqt->wqs)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		rqt->rqs[i] = devx_find(c->file, &devx_rq_class, prm_get32(rqtc, RQTC_ENTRY(i)));
		if (!rqt->rqs[i])
			return -EINVAL;
		rqt->wqs[i] = devx_wq_of(rqt->rqs[i]);
	}
	return 0;
}

static const struct devx_class devx_rqt_class;

static int rqt_make(struct devx_call *c, struct devx_rqt *rqt)
{
	const uint8_t *rqtc = c->in + RAW_CONTEXT;
	int ret;

	if (!ufile_port(c->file)->ethernet)
		return -EOPNOTSUPP;
	if (prm_get(rqtc, RQTC_LIST_TYPE)) {
		log_info("devx: tables of other than receive queues are not supported");
		return -EOPNOTSUPP;
	}
	rqt->max = prm_get32(rqtc, RQTC_MAX);
	if (rqt->max > 1u << ADAPTER_MAX_LOG_IND_TBL)
		return -EINVAL;
	ret = rqt_read(c, rqt);
	if (ret < 0)
		return ret;
	devx_obj_init(&rqt->obj, &devx_rqt_class, devx_free_number(c->file, &devx_rqt_class));
	rqt_count_users(rqt, 1);
	return 0;
}

static int devx_create_rqt(struct devx_call *c, struct devx_obj **out)
{
	struct devx_rqt *rqt = calloc(1, sizeof(*rqt));
	int ret;

	if (!rqt)
		return -ENOMEM;
	ret = rqt_make(c, rqt);
	if (ret < 0) {
		rqt_free_lists(rqt);
		free(rqt);
		return ret;
	}
	prm_set(c->out, CMD_OUT_NUMBER, rqt->obj.number);
	*out = &rqt->obj;
	return 0;
}

static void devx_rqt_free(struct devx_obj *obj)
{
	struct devx_rqt *rqt = container_of(obj, struct devx_rqt, obj);

	rqt_count_users(rqt, -1);
	rqt_free_lists(rqt);
}

static const struct devx_class devx_rqt_class = {.free = devx_rqt_free};

static void devx_tir_rss(const struct devx_tir *tir, struct rss_attr *rss);

/* Tells all TIRs of the table or none: it allocates all that they need before it changes any. */
static int rqt_tell_tirs(const struct devx_rqt *old, const struct devx_rqt *changed)
{
	struct rss **made;
	uint32_t n = 0, i = 0;
	int ret = 0;

	for (const struct devx_tir *tir = old->tirs; tir; tir = tir->next_of_rqt)
		n++;
	made = (struct rss **)calloc(n + 1, sizeof(struct rss *));
	if (!made)
		return -ENOMEM;
	for (const struct devx_tir *tir = old->tirs; tir && ret == 0; tir = tir->next_of_rqt) {
		struct rss_attr rss;

		devx_tir_rss(tir, &rss);
		rss.wqs = changed->wqs;
		rss.log_size = changed->log_size;
		ret = rss_make(&rss, &made[i++]);
	}
	i = 0;
	for (const struct devx_tir *tir = old->tirs; tir && ret == 0; tir = tir->next_of_rqt)
		qp_set_rss(tir->qp, made[i++]);
	for (i = 0; i < n && ret < 0; i++)
		rss_discard(made[i]);
	free((void *)made);
	return ret;
}

static int devx_modify_rqt(struct devx_call *c)
{
	struct devx_rqt *rqt = devx_rqt_of(c->target), changed = {.max = rqt->max};
	int ret;

	if (prm_get(c->in, RAW_MODIFY_BITMASK) & ~(uint64_t)MODIFY_RQT_LIST) {
		log_info("devx: MODIFY_RQT changes the list only");
		return -EOPNOTSUPP;
	}
	if (!prm_get(c->in, RAW_MODIFY_BITMASK))
		return 0;
	ret = rqt_read(c, &changed);
	if (ret == 0)
		ret = rqt_tell_tirs(rqt, &changed);
	if (ret < 0) {
		rqt_free_lists(&changed);
		return ret;
	}
	rqt_count_users(&changed, 1);
	rqt_count_users(rqt, -1);
	rqt_free_lists(rqt);
	rqt->rqs = changed.rqs;
	rqt->wqs = changed.wqs;
	rqt->nqueues = changed.nqueues;
	rqt->log_size = changed.log_size;
	return 0;
}

static int devx_query_rqt(struct devx_call *c)
{
	const struct devx_rqt *rqt = devx_rqt_of(c->target);
	uint32_t n = 1u << rqt->log_size;
	uint8_t *rqtc = c->out + RAW_CONTEXT;

	if (c->out_len < RQT_FIXED_BYTES + (size_t)n * RQTC_ENTRY_BYTES)
		return -EINVAL;
	prm_set(rqtc, RQTC_MAX, rqt->max);
	prm_set(rqtc, RQTC_ACTUAL, n);
	for (uint32_t i = 0; i < n; i++)
		prm_set(rqtc, RQTC_ENTRY(i), wq_number(rqt->wqs[i]));
	return 0;
}

/* ---- TIRs ---- */

/* Refuses the features that this device does not have. */
static int tir_check_features(const uint8_t *tirc)
{
	uint32_t hash = prm_get32(tirc, TIRC_HASH);

	if (prm_get(tirc, TIRC_TLS) || prm_get(tirc, TIRC_MERGE) || prm_get(tirc, TIRC_SYMMETRIC) ||
	    prm_get(tirc, TIRC_TUNNELED) || prm_get(tirc, TIRC_INNER)) {
		log_info("devx: TIRs with TLS, merging of packets, symmetric hashes or a look "
			 "into tunnels are not supported");
		return -EOPNOTSUPP;
	}
	if (hash != TIRC_HASH_NONE && hash != TIRC_HASH_TOEPLITZ) {
		log_info("devx: TIRs hash by Toeplitz or not at all");
		return -EOPNOTSUPP;
	}
	return prm_get(tirc, TIRC_INDIRECT) <= TIRC_BY_TABLE ? 0 : -EINVAL;
}

static uint32_t tir_fields(const uint8_t *tirc)
{
	uint32_t chosen = prm_get32(tirc, TIRC_OUTER_FIELDS);
	bool v6 = prm_get(tirc, TIRC_OUTER_L3), udp = prm_get(tirc, TIRC_OUTER_L4);

	if (prm_get(tirc, TIRC_HASH) == TIRC_HASH_NONE)
		return 0;
	return (chosen & TIRC_SRC_IP ? v6 ? RSS_SRC_IPV6 : RSS_SRC_IPV4 : 0) |
	       (chosen & TIRC_DST_IP ? v6 ? RSS_DST_IPV6 : RSS_DST_IPV4 : 0) |
	       (chosen & TIRC_SRC_PORT ? udp ? RSS_SRC_PORT_UDP : RSS_SRC_PORT_TCP : 0) |
	       (chosen & TIRC_DST_PORT ? udp ? RSS_DST_PORT_UDP : RSS_DST_PORT_TCP : 0);
}

/* Says how the TIR spreads frames over the queues of its table, or to its one queue. */
static void devx_tir_rss(const struct devx_tir *tir, struct rss_attr *rss)
{
	*rss = (struct rss_attr){.fields = tir_fields(tir->context), .wqs = &tir->wq};
	memcpy(rss->key, tir->context + TIRC_HASH_KEY, sizeof(rss->key));
	if (tir->rqt)
		rss->wqs = devx_rqt_queues(tir->rqt, &rss->log_size);
}

/* A TIR receives frames of its own domain unless they are blocked. */
static uint32_t tir_loopback(const uint8_t *tirc)
{
	uint32_t block = prm_get32(tirc, TIRC_SELF_BLOCK);

	return (block & TIRC_BLOCK_UNICAST ? 0 : QP_LOOPBACK_UC) |
	       (block & TIRC_BLOCK_MULTICAST ? 0 : QP_LOOPBACK_MC);
}

static int tir_find_queues(struct devx_call *c, struct devx_tir *tir, struct uobj **out)
{
	const uint8_t *tirc = tir->context;

	if (prm_get(tirc, TIRC_INDIRECT) == TIRC_BY_TABLE) {
		*out = devx_find(c->file, &devx_rqt_class, prm_get32(tirc, TIRC_RQT));
		if (*out)
			tir->rqt = devx_rqt_of(*out);
	} else {
		*out = devx_find(c->file, &devx_rq_class, prm_get32(tirc, TIRC_RQN));
		if (*out)
			tir->wq = devx_wq_of(*out);
	}
	return *out ? 0 : -EINVAL;
}

static int tir_make(struct devx_call *c, struct devx_tir *tir)
{
	struct rss_attr rss;
	struct qp_create_attr attr = {
		.type = IB_QPT_RAW_PACKET,
		.loopback = tir_loopback(tir->context),
		.rss = &rss,
	};
	struct uobj *domain, *queues = NULL;
	int ret = ufile_port(c->file)->ethernet ? tir_check_features(tir->context) : -EOPNOTSUPP;

	if (ret == 0)
		ret = devx_td(c->file, prm_get32(tir->context, TIRC_DOMAIN), &domain);
	if (ret == 0)
		ret = tir_find_queues(c, tir, &queues);
	if (ret < 0)
		return ret;
	attr.domain = domain;
	devx_tir_rss(tir, &rss);
	ret = qp_create(c->file->hca->adapter, &attr, &tir->qp);
	if (ret < 0)
		return ret;
	devx_obj_init(&tir->obj, &devx_tir_class, qp_number(tir->qp));
	if (domain)
		devx_obj_uses(&tir->obj, domain);
	devx_obj_uses(&tir->obj, queues);
	if (tir->rqt)
		devx_rqt_add_tir(queues, tir);
	return 0;
}

static int devx_create_tir(struct devx_call *c, struct devx_obj **out)
{
	struct devx_tir *tir = calloc(1, sizeof(*tir));
	uint64_t address;
	int ret;

	if (!tir)
		return -ENOMEM;
	memcpy(tir->context, c->in + RAW_CONTEXT, sizeof(tir->context));
	ret = tir_make(c, tir);
	if (ret < 0) {
		free(tir);
		return ret;
	}
	prm_set(c->out, CMD_OUT_NUMBER, tir->obj.number);
	address = steer_address(STEER_TIR, tir->obj.number);
	prm_set(c->out, TIR_OUT_ICM_63_40, address >> 40);
	prm_set(c->out, TIR_OUT_ICM_39_32, address >> 32);
	prm_set(c->out, TIR_OUT_ICM_31_0, address);
	*out = &tir->obj;
	return 0;
}

static void devx_tir_free(struct devx_obj *obj)
{
	struct devx_tir *tir = container_of(obj, struct devx_tir, obj);

	if (tir->rqt)
		devx_rqt_remove_tir(tir);
	qp_destroy(tir->qp);
}

static struct qp *devx_tir_takes_frames(struct devx_obj *obj)
{
	return container_of(obj, struct devx_tir, obj)->qp;
}

const struct devx_class devx_tir_class = {
	.free = devx_tir_free,
	.takes_frames = devx_tir_takes_frames,
};

/* Changes the hash in one step; the context stays as it was if there is no memory. */
static int tir_modify_hash(struct devx_tir *tir, const uint8_t *tirc)
{
	struct devx_tir changed = *tir;
	struct rss_attr rss;
	struct rss *made;
	int ret;

	prm_set(changed.context, TIRC_HASH, prm_get(tirc, TIRC_HASH));
	prm_set(changed.context, TIRC_OUTER_L3, prm_get(tirc, TIRC_OUTER_L3));
	prm_set(changed.context, TIRC_OUTER_L4, prm_get(tirc, TIRC_OUTER_L4));
	prm_set(changed.context, TIRC_OUTER_FIELDS, prm_get(tirc, TIRC_OUTER_FIELDS));
	memcpy(changed.context + TIRC_HASH_KEY, tirc + TIRC_HASH_KEY, RSS_KEY_BYTES);
	ret = tir_check_features(tirc);
	if (ret < 0)
		return ret;
	devx_tir_rss(&changed, &rss);
	ret = rss_make(&rss, &made);
	if (ret < 0)
		return ret;
	qp_set_rss(tir->qp, made);
	memcpy(tir->context, changed.context, sizeof(tir->context));
	return 0;
}

static int devx_modify_tir(struct devx_call *c)
{
	struct devx_tir *tir = container_of(c->target, struct devx_tir, obj.uobj);
	const uint8_t *tirc = c->in + RAW_CONTEXT;
	uint64_t what = prm_get(c->in, RAW_MODIFY_BITMASK);
	int ret = 0;

	if (what & ~(uint64_t)(MODIFY_TIR_HASH | MODIFY_TIR_SELF_LB)) {
		log_info("devx: MODIFY_TIR changes hash and loopback only");
		return -EOPNOTSUPP;
	}
	if (what & MODIFY_TIR_HASH)
		ret = tir_modify_hash(tir, tirc);
	if (ret == 0 && what & MODIFY_TIR_SELF_LB) {
		prm_set(tir->context, TIRC_SELF_BLOCK, prm_get(tirc, TIRC_SELF_BLOCK));
		qp_set_loopback(tir->qp, tir_loopback(tir->context));
	}
	return ret;
}

static int devx_query_tir(struct devx_call *c)
{
	memcpy(c->out + RAW_CONTEXT, container_of(c->target, struct devx_tir, obj.uobj)->context,
	       TIRC_BYTES);
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_RQ, RQ_BYTES, CMD_OUT_BYTES, devx_create_rq),
	DEVX_MODIFY(MODIFY_RQ, &devx_rq_class, RQ_BYTES, CMD_OUT_BYTES, devx_modify_rq),
	DEVX_QUERY(QUERY_RQ, &devx_rq_class, CMD_IN_BYTES, RQ_BYTES, devx_query_rq),
	DEVX_CREATE(CREATE_RQT, RQT_FIXED_BYTES, CMD_OUT_BYTES, devx_create_rqt),
	DEVX_MODIFY(MODIFY_RQT, &devx_rqt_class, RQT_FIXED_BYTES, CMD_OUT_BYTES, devx_modify_rqt),
	DEVX_QUERY(QUERY_RQT, &devx_rqt_class, CMD_IN_BYTES, RQT_FIXED_BYTES, devx_query_rqt),
	DEVX_CREATE(CREATE_TIR, TIR_BYTES, CMD_OUT_BYTES, devx_create_tir),
	DEVX_MODIFY(MODIFY_TIR, &devx_tir_class, TIR_BYTES, CMD_OUT_BYTES, devx_modify_tir),
	DEVX_QUERY(QUERY_TIR, &devx_tir_class, CMD_IN_BYTES, TIR_BYTES, devx_query_tir),
};

const struct devx_family devx_rq_family = DEVX_FAMILY(ops);
