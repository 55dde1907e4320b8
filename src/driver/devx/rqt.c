// SPDX-License-Identifier: BSD-2-Clause
/* Tables of receive queues, over which TIRs spread frames. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "driver/devx/raw.h"

struct devx_rqt {
	struct devx_obj obj;
	uint32_t max, nqueues;
	uint32_t log_size;
	struct uobj **rqs; /* the table uses each of them */
	struct wq **wqs;
	struct devx_tir *tirs;
};

struct devx_rqt *devx_rqt_of(struct uobj *rqt)
{
	return container_of(rqt, struct devx_rqt, obj.uobj);
}

struct wq *const *devx_rqt_queues(const struct devx_rqt *rqt, uint32_t *log_size)
{
	*log_size = rqt->log_size;
	return rqt->wqs;
}

void devx_rqt_add_tir(struct uobj *rqt, struct devx_tir *tir)
{
	struct devx_rqt *r = devx_rqt_of(rqt);

	tir->next_of_rqt = r->tirs;
	r->tirs = tir;
}

void devx_rqt_remove_tir(struct devx_tir *tir)
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

const struct devx_class devx_rqt_class = {.free = devx_rqt_free};

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

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_RQT, RQT_FIXED_BYTES, CMD_OUT_BYTES, devx_create_rqt),
	DEVX_MODIFY(MODIFY_RQT, &devx_rqt_class, RQT_FIXED_BYTES, CMD_OUT_BYTES, devx_modify_rqt),
	DEVX_QUERY(QUERY_RQT, &devx_rqt_class, CMD_IN_BYTES, RQT_FIXED_BYTES, devx_query_rqt),
};

const struct devx_family devx_rqt_family = DEVX_FAMILY(ops);
