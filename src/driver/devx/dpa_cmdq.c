// SPDX-License-Identifier: BSD-2-Clause
/* Command queues of the DPA. */
#include "driver/devx/dpa_cmdq.h"

#include <errno.h>
#include <stdatomic.h>

#include "driver/devx/dpa.h"

static void dpa_cmdq_free(struct devx_obj *obj)
{
	dpa_cmdq_destroy(container_of(obj, struct devx_dpa_cmdq, obj)->queue);
}

static const struct devx_class devx_dpa_cmdq_class = {.free = dpa_cmdq_free};

int devx_create_dpa_cmdq(struct devx_call *c, struct devx_obj *obj)
{
	static _Atomic(uint32_t) number;
	struct devx_dpa_cmdq *q = container_of(obj, struct devx_dpa_cmdq, obj);
	const struct dpa_cmdq_attr attr = {
		.workers = prm_get32(c->in, DPA_CMDQ_WORKERS_NR),
		.batch = prm_get32(c->in, DPA_CMDQ_BATCH),
		.running = prm_get(c->in, DPA_CMDQ_RUNNING),
	};
	struct uobj *process =
		devx_find(c->file, &devx_dpa_process_class, prm_get32(c->in, DPA_CMDQ_PROCESS));
	int ret;

	if (!process)
		return -ENOENT;
	q->process = container_of(process, struct devx_dpa_process, obj.uobj)->process;
	ret = dpa_cmdq_create(q->process, &attr, &q->queue);
	if (ret < 0)
		return ret;
	devx_obj_init(obj, &devx_dpa_cmdq_class, atomic_fetch_add(&number, 1) % 0xffffff + 1);
	devx_obj_uses(obj, process);
	return 0;
}

int devx_dpa_cmdq_op(struct devx_call *c, enum dpa_op op)
{
	struct uobj *uobj =
		devx_find(c->file, &devx_dpa_cmdq_class, prm_get32(c->in, DPA_IN_PROCESS));
	uint64_t function = prm_get(c->in, DPA_IN_ADDR);
	const struct devx_dpa_cmdq *d;
	struct dpa_cmdq *q;

	if (!uobj)
		return -ENOENT;
	d = container_of(uobj, struct devx_dpa_cmdq, obj.uobj);
	q = d->queue;
	switch (op) {
	case DPA_OP_CMDQ_ADD:
		if (!dpa_process_has_code(d->process, function))
			return -EINVAL;
		return dpa_cmdq_add(q, function, prm_get(c->in, DPA_IN_SOURCE));
	case DPA_OP_CMDQ_START:
		return dpa_cmdq_start(q);
	case DPA_OP_CMDQ_IS_EMPTY:
		prm_set(c->out, DPA_OUT_STATE, dpa_cmdq_is_empty(q));
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}
