// SPDX-License-Identifier: BSD-2-Clause
/*
 * TIRs, which steering rules lead to.  A TIR leads to a receive queue, or spreads frames over a
 * table of receive queues.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/ste/icm.h"
#include "base/log.h"
#include "driver/devx/raw.h"

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

void devx_tir_rss(const struct devx_tir *tir, struct rss_attr *rss)
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
	DEVX_CREATE(CREATE_TIR, TIR_BYTES, CMD_OUT_BYTES, devx_create_tir),
	DEVX_MODIFY(MODIFY_TIR, &devx_tir_class, TIR_BYTES, CMD_OUT_BYTES, devx_modify_tir),
	DEVX_QUERY(QUERY_TIR, &devx_tir_class, CMD_IN_BYTES, TIR_BYTES, devx_query_tir),
};

const struct devx_family devx_tir_family = DEVX_FAMILY(ops);
