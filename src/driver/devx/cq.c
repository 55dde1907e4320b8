// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues made by DEVX.  The program owns everything but the producer index: it maps the
 * register page itself, so we watch the page from the beginning.  It hears of completions by the
 * event of the event queue that it subscribes to.
 *
 * Queues of a DPA tell one of its threads, or an event queue that the command names in the same
 * way; device code arms them by value.  Queues with a region that has no page (devx_uar) are armed
 * so, too.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/devx/devx.h"
#include "driver/devx/emulation.h"
#include "driver/devx/eq.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "usermem/usermem.h"

struct devx_cq {
	struct devx_obj obj;
	struct cq *cq;
	struct doorbell_user bell;
	struct cq_attr attr;
	struct devx_obj *thread;	   /* thread of a DPA, or NULL */
	struct devx_eq *eq;		   /* event queue that the program made, or NULL */
	struct devx_emulated_eq *emulated; /* interrupt of an emulated function, or NULL */
	bool apu;
	uint32_t element; /* enum cqc_element */
	uint32_t uar_page;
	uint32_t eqn; /* number of the event queue or thread */
	uint32_t period;
	uint32_t period_mode;
	uint32_t max_count;
};

struct cq *devx_cq_of(struct uobj *obj)
{
	if (obj->type == UOBJ_CQ)
		return container_of(obj, struct ucq, uobj)->cq;
	return container_of(obj, struct devx_cq, obj.uobj)->cq;
}

bool devx_cq_region(struct uobj *obj, uint32_t *region)
{
	if (obj->type != UOBJ_DEVX)
		return false;
	*region = container_of(obj, struct devx_cq, obj.uobj)->attr.region;
	return *region;
}

static void devx_cq_on_event(void *user)
{
	struct devx_cq *cq = user;
	uint8_t eqe[EQE_BYTES] = {0};

	prm_set(eqe, EQE_TYPE, EQE_COMP);
	prm_set(eqe, EQE_COMP_CQN, cq_number(cq->cq));
	if (cq->eq)
		devx_eq_push(cq->eq, eqe);
	if (cq->emulated)
		function_interrupt(cq->emulated->function);
	devx_event(&cq->obj, EQE_COMP, eqe);
}

static void devx_cq_on_activation(void *user)
{
	const struct devx_cq *cq = user;

	cq->thread->class->activate(cq->thread);
}

static void devx_cq_on_async(void *user, enum ib_event event)
{
	struct devx_cq *cq = user;
	uint8_t eqe[EQE_BYTES] = {0};

	(void)event; /* a CQ has only one event: overrun */
	prm_set(eqe, EQE_TYPE, EQE_CQ_ERROR);
	prm_set(eqe, EQE_CQ_ERR_NR, cq_number(cq->cq));
	prm_set(eqe, EQE_CQ_ERR, EQE_CQ_OVERRUN);
	devx_event(&cq->obj, EQE_CQ_ERROR, eqe);
}

static void devx_cq_rung(struct doorbell_user *u)
{
	cq_doorbell(container_of(u, struct devx_cq, bell)->cq);
}

/* Refuses the features that this device does not have. */
static int devx_cq_check_features(const uint8_t *cqc)
{
	static const struct devx_lack lacks[] = {{CQC_PAGE_OFFSET, "page_offset"}};
	uint32_t cqe_size = prm_get32(cqc, CQC_CQE_SIZE);
	int ret = devx_lacks(cqc, lacks);

	if (ret == 0 && cqe_size > CQC_CQE_128)
		ret = devx_refuse(-EOPNOTSUPP, "cqe_sz", cqe_size,
				  "the device has 0 (64 bytes) and 1 (128 bytes)");
	return ret < 0 ? ret
		       : devx_at_most("log_cq_size", prm_get32(cqc, CQC_LOG_SIZE),
				      log2_of(ADAPTER_MAX_CQE + 1));
}

/* Chooses how completions are compressed, and which parts of them are kept. */
static int devx_cq_choose_compression(struct devx_cq *cq, const uint8_t *cqc)
{
	uint32_t format =
		prm_get32(cqc, CQC_MINI_FORMAT_EXT) << 2 | prm_get32(cqc, CQC_MINI_FORMAT);
	uint32_t layout = prm_get32(cqc, CQC_LAYOUT);

	if (!prm_get(cqc, CQC_COMPRESSION))
		return 0;
	if (cq->attr.collapsed)
		return devx_refuse(-EINVAL, "cqe_comp_en", 1, "a queue with cc has one entry");
	if (layout > CQC_LAYOUT_ENHANCED)
		return devx_refuse(-EINVAL, "cqe_compression_layout", layout,
				   "0 (basic) and 1 (enhanced) are possible");
	if (format > CQE_MINI_L3L4)
		return devx_refuse(-EINVAL, "mini_cqe_res_format", format, "unknown");
	if (format == CQE_MINI_FLOW_TAG)
		return devx_refuse(-EOPNOTSUPP, "mini_cqe_res_format", format,
				   "the device does not compress flow tags");
	cq->attr.compression =
		layout == CQC_LAYOUT_BASIC ? CQ_COMPRESSED_BASIC : CQ_COMPRESSED_ENHANCED;
	cq->attr.mini_format = (uint8_t)format;
	return 0;
}

static bool eqn_ok(uint32_t eqn)
{
	return eqn - DEVX_EQN_FIRST < uverbs_comp_vectors();
}

static void devx_cq_free(struct devx_obj *obj)
{
	struct devx_cq *cq = container_of(obj, struct devx_cq, obj);

	doorbell_user_release(&cq->bell);
	if (cq_destroy(cq->cq) < 0)
		log_error("devx: a CQ without users is in use");
}

static bool devx_cq_is(struct uobj *obj, uint32_t number)
{
	return obj->type == UOBJ_CQ && cq_number(container_of(obj, struct ucq, uobj)->cq) == number;
}

const struct devx_class devx_cq_class = {.is = devx_cq_is, .free = devx_cq_free};

static bool is_thread(const struct devx_class *class)
{
	return class->activate;
}

/* Chooses who hears of completions. */
static int devx_cq_choose_element(struct devx_call *c, struct devx_cq *cq)
{
	const uint8_t *cqc = c->in + CREATE_CQ_CONTEXT;

	cq->apu = prm_get(cqc, CQC_APU);
	cq->element = cq->apu ? prm_get32(cqc, CQC_ELEMENT) : 0;
	cq->eqn = prm_get32(cqc, CQC_EQN);
	if (cq->apu && cq->element == CQC_ELEMENT_THREAD) {
		cq->thread = devx_find_fitting(c->file, is_thread, cq->eqn);
		cq->attr.event = devx_cq_on_activation;
		return cq->thread ? 0
				  : devx_refuse(-EINVAL, "c_eqn", cq->eqn,
						"no DPA thread of this context has that number");
	}
	/* Emulated event queues have numbers among the others. */
	cq->attr.event = devx_cq_on_event;
	cq->eq = devx_eq_find(c->file, cq->eqn);
	cq->emulated = devx_emulated_eq_find(c->file, cq->eqn);
	if (cq->element > CQC_ELEMENT_EMULATED_EQ)
		return devx_refuse(-EINVAL, "apu_element_type", cq->element,
				   "0 (thread), 1 and 2 (event queues) are possible");
	if (!cq->eq && !cq->emulated && !eqn_ok(cq->eqn))
		return devx_refuse(-EINVAL, "c_eqn", cq->eqn,
				   "no event queue of this context has that number");
	return 0;
}

/* Chooses where doorbells come from, and so how the program arms the queue. */
static void devx_cq_choose_arming(struct devx_cq *cq, const uint8_t *cqc, bool duar)
{
	uint32_t state = prm_get32(cqc, CQC_STATE);

	if (duar)
		cq->attr.region = cq->uar_page;
	if (!cq->apu && !duar)
		return;
	cq->attr.arming = state == CQC_STATE_ALWAYS ? CQ_ARM_ALWAYS : CQ_ARM_VALUE;
	cq->attr.armed = state == CQC_STATE_ARMED;
}

static int devx_cq_use_memory(struct devx_call *c, struct devx_cq *cq)
{
	const uint8_t *cqc = c->in + CREATE_CQ_CONTEXT;
	const struct devx_part ring = {
		.field = "cq_umem_offset",
		.umem_id = prm_get32(c->in, CREATE_CQ_UMEM),
		.offset = prm_get(c->in, CREATE_CQ_OFFSET),
		.length = (uint64_t)cq->attr.entries * cq->attr.cqe_bytes,
	};
	const struct devx_part record = {
		.field = "dbr_addr",
		.umem_id = prm_get32(cqc, CQC_DBR_UMEM),
		.offset = prm_get(cqc, CQC_DBR_ADDR),
		.length = 2 * sizeof(be32),
	};
	struct uobj *umem;

	cq->attr.buf = devx_umem_part(c->file, &ring, true, &umem);
	if (!cq->attr.buf)
		return -EINVAL;
	devx_obj_uses(&cq->obj, umem);
	cq->attr.dbrec = devx_umem_part(c->file, &record, false, &umem);
	if (!cq->attr.dbrec)
		return -EINVAL;
	devx_obj_uses(&cq->obj, umem);
	return 0;
}

static int devx_cq_make(struct devx_call *c, struct devx_cq *cq)
{
	const uint8_t *cqc = c->in + CREATE_CQ_CONTEXT;
	struct uobj *duar;
	int ret = devx_cq_check_features(cqc);

	if (ret < 0)
		return ret;
	cq->attr = (struct cq_attr){
		.entries = 1u << prm_get32(cqc, CQC_LOG_SIZE),
		.cqe_bytes = CQE_BYTES << prm_get32(cqc, CQC_CQE_SIZE),
		.timestamps = true,
		.overrun_ignore = prm_get(cqc, CQC_OVERRUN_IGNORE),
		.collapsed = prm_get(cqc, CQC_COLLAPSED),
		.context = c->file->context_number,
		.async = devx_cq_on_async,
		.user = cq,
	};
	cq->uar_page = prm_get32(cqc, CQC_UAR_PAGE);
	cq->period = prm_get32(cqc, CQC_PERIOD);
	cq->period_mode = prm_get32(cqc, CQC_PERIOD_MODE);
	cq->max_count = prm_get32(cqc, CQC_MAX_COUNT);
	ret = devx_cq_choose_compression(cq, cqc);
	if (ret == 0)
		ret = devx_cq_choose_element(c, cq);
	if (ret == 0)
		ret = devx_uar(c->file, cq->uar_page, &duar);
	if (ret < 0)
		return ret;
	devx_cq_choose_arming(cq, cqc, duar);
	if (cq->thread)
		devx_obj_uses(&cq->obj, &cq->thread->uobj);
	if (cq->eq)
		devx_obj_uses(&cq->obj, devx_eq_uobj(cq->eq));
	if (cq->emulated)
		devx_obj_uses(&cq->obj, &cq->emulated->obj.uobj);
	if (duar)
		devx_obj_uses(&cq->obj, duar);
	ret = devx_cq_use_memory(c, cq);
	if (ret == 0)
		ret = cq_create(c->file->hca->adapter, &cq->attr, &cq->cq);
	if (ret == 0)
		devx_obj_init(&cq->obj, &devx_cq_class, cq_number(cq->cq));
	return ret;
}

static int devx_create_cq(struct devx_call *c, struct devx_obj **out)
{
	struct devx_cq *cq = calloc(1, sizeof(*cq));
	int ret;

	if (!cq)
		return -ENOMEM;
	ret = devx_cq_make(c, cq);
	if (ret < 0) {
		devx_obj_release(&cq->obj);
		free(cq);
		return ret;
	}
	cq_moderate_newest(cq->cq, cq->period_mode == CQC_PERIOD_FROM_CQE);
	if (cq->period || cq->max_count)
		cq_moderate(cq->cq, cq->max_count, cq->period);
	/* A region without a page has no stores to watch for. */
	doorbell_user_init(&cq->bell, DOORBELL_CQ, uuar_regs(c->file, cq->uar_page), devx_cq_rung);
	/* No hook announces what such a program stores. */
	doorbell_taken_over(&cq->bell);
	prm_set(c->out, CMD_OUT_NUMBER, cq->obj.number);
	*out = &cq->obj;
	return 0;
}

/* A CQ of verbs has some of this in its own record, so this reads it there. */
static void devx_cq_describe(struct uobj *obj, uint8_t *cqc)
{
	const struct devx_cq *cq;

	if (obj->type == UOBJ_CQ) {
		const struct ucq *u = container_of(obj, struct ucq, uobj);

		prm_set(cqc, CQC_LOG_SIZE, 31u - (unsigned)__builtin_clz(u->entries));
		prm_set(cqc, CQC_CQE_SIZE, u->cqe_bytes == CQE_BYTES ? CQC_CQE_64 : CQC_CQE_128);
		prm_set(cqc, CQC_EQN, DEVX_EQN_FIRST);
		return;
	}
	cq = container_of(obj, struct devx_cq, obj.uobj);
	prm_set(cqc, CQC_LOG_SIZE, 31u - (unsigned)__builtin_clz(cq->attr.entries));
	prm_set(cqc, CQC_CQE_SIZE, cq->attr.cqe_bytes == CQE_BYTES ? CQC_CQE_64 : CQC_CQE_128);
	prm_set(cqc, CQC_EQN, cq->eqn);
	prm_set(cqc, CQC_APU, cq->apu);
	prm_set(cqc, CQC_ELEMENT, cq->element);
	prm_set(cqc, CQC_COLLAPSED, cq->attr.collapsed);
	prm_set(cqc, CQC_COMPRESSION, cq->attr.compression != CQ_PLAIN);
	prm_set(cqc, CQC_LAYOUT, cq->attr.compression == CQ_COMPRESSED_ENHANCED);
	prm_set(cqc, CQC_MINI_FORMAT, cq->attr.mini_format & 3);
	prm_set(cqc, CQC_MINI_FORMAT_EXT, cq->attr.mini_format >> 2);
	prm_set(cqc, CQC_OVERRUN_IGNORE, cq->attr.overrun_ignore);
	prm_set(cqc, CQC_UAR_PAGE, cq->uar_page);
	prm_set(cqc, CQC_PERIOD, cq->period);
	prm_set(cqc, CQC_PERIOD_MODE, cq->period_mode);
	prm_set(cqc, CQC_MAX_COUNT, cq->max_count);
}

static enum cqc_state devx_cq_state(struct uobj *obj, bool armed)
{
	if (obj->type == UOBJ_DEVX &&
	    container_of(obj, struct devx_cq, obj.uobj)->attr.arming == CQ_ARM_ALWAYS)
		return CQC_STATE_ALWAYS;
	return armed ? CQC_STATE_ARMED : CQC_STATE_FIRED;
}

static int devx_query_cq(struct devx_call *c)
{
	uint8_t *cqc = c->out + QUERY_CQ_CONTEXT;
	struct cq_counters counters;

	devx_cq_describe(c->target, cqc);
	cq_query(devx_cq_of(c->target), &counters);
	prm_set(cqc, CQC_STATUS, counters.overrun ? CQC_STATUS_OVERFLOW : CQC_STATUS_OK);
	prm_set(cqc, CQC_STATE, devx_cq_state(c->target, counters.armed));
	prm_set(cqc, CQC_PRODUCER, counters.producer);
	prm_set(cqc, CQC_CONSUMER, counters.consumer);
	return 0;
}

/* Checks what a program may ask of MODIFY_CQ here. */
static int devx_cq_check_modify(const struct devx_call *c, uint32_t select)
{
	const uint32_t known =
		MODIFY_CQ_PERIOD | MODIFY_CQ_MAX_COUNT | MODIFY_CQ_EQN | MODIFY_CQ_PERIOD_MODE;

	if (prm_get(c->in, CMD_IN_OP_MOD) != MODIFY_CQ_MODERATE || select & ~known) {
		log_info("devx: MODIFY_CQ changes moderation only");
		return -EOPNOTSUPP;
	}
	if (!(select & MODIFY_CQ_EQN))
		return 0;
	/* The CQ keeps the thread that it was made for, because the thread counts it as a user.
	 * The same holds for an event queue that the program made. */
	if (c->target->type == UOBJ_DEVX) {
		const struct devx_cq *cq = container_of(c->target, struct devx_cq, obj.uobj);

		if (cq->apu || cq->eq)
			return -EINVAL;
	}
	return eqn_ok(prm_get32(c->in + MODIFY_CQ_CONTEXT, CQC_EQN)) ? 0 : -EINVAL;
}

/* Changes the moderation; the vector makes no difference to this device. */
static int devx_modify_cq(struct devx_call *c)
{
	const uint8_t *cqc = c->in + MODIFY_CQ_CONTEXT;
	uint32_t select = prm_get32(c->in, MODIFY_CQ_SELECT);
	/* stands in for a CQ of verbs */
	struct devx_cq other = {0}, *cq = &other;
	int ret = devx_cq_check_modify(c, select);

	if (ret < 0)
		return ret;
	if (c->target->type == UOBJ_DEVX)
		cq = container_of(c->target, struct devx_cq, obj.uobj);
	if (select & MODIFY_CQ_PERIOD)
		cq->period = prm_get32(cqc, CQC_PERIOD);
	if (select & MODIFY_CQ_PERIOD_MODE) {
		cq->period_mode = prm_get32(cqc, CQC_PERIOD_MODE);
		cq_moderate_newest(devx_cq_of(c->target), cq->period_mode == CQC_PERIOD_FROM_CQE);
	}
	if (select & MODIFY_CQ_MAX_COUNT)
		cq->max_count = prm_get32(cqc, CQC_MAX_COUNT);
	if (select & MODIFY_CQ_EQN)
		cq->eqn = prm_get32(cqc, CQC_EQN);
	if (select & (MODIFY_CQ_PERIOD | MODIFY_CQ_MAX_COUNT))
		cq_moderate(devx_cq_of(c->target), cq->max_count, cq->period);
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_CQ, CREATE_CQ_IN_BYTES, CMD_OUT_BYTES, devx_create_cq),
	DEVX_MODIFY(MODIFY_CQ, &devx_cq_class, MODIFY_CQ_IN_BYTES, CMD_OUT_BYTES, devx_modify_cq),
	DEVX_QUERY(QUERY_CQ, &devx_cq_class, CMD_IN_BYTES, QUERY_CQ_OUT_BYTES, devx_query_cq),
};

const struct devx_family devx_cq_family = DEVX_FAMILY(ops);
