// SPDX-License-Identifier: BSD-2-Clause
/*
 * What runs and rings in a process of the DPA, as objects of DEVX: threads (event handlers, which
 * completion queues activate), command queues, outboxes.
 */
#include "driver/devx/dpa.h"

#include <errno.h>
#include <stdatomic.h>

#include "dpa/handler.h"
#include "dpa/outbox.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd.h"

/* ---- threads ---- */

static void devx_dpa_thread_free(struct devx_obj *obj)
{
	struct devx_dpa_thread *t = container_of(obj, struct devx_dpa_thread, obj);

	dpa_unshare(&t->shared);
	if (t->pcc)
		dpa_pcc_end(t->pcc);
	dpa_handler_destroy(t->handler);
}

static void devx_dpa_thread_activate(struct devx_obj *obj)
{
	dpa_handler_activate(container_of(obj, struct devx_dpa_thread, obj)->handler);
}

static const struct devx_class devx_dpa_thread_class = {
	.free = devx_dpa_thread_free,
	.activate = devx_dpa_thread_activate,
};

int devx_create_dpa_thread(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_dpa_thread *t = container_of(obj, struct devx_dpa_thread, obj);
	uint32_t id = dpa_thread_number();
	struct dpa_handler_attr attr = {
		.function = prm_get(c->in, DPA_THREAD_FUNCTION),
		.local_storage = prm_get(c->in, DPA_THREAD_LOCAL_STORAGE),
		.id = id,
		.eu = DPA_EU_ANY,
		.continuable = prm_get(c->in, DPA_THREAD_CONTINUABLE),
	};
	struct uobj *process =
		devx_find(c->file, &devx_dpa_process_class, prm_get32(c->in, DPA_THREAD_PROCESS));
	int ret;

	if (!process)
		return -ENOENT;
	if (prm_get(c->in, DPA_THREAD_STRICT))
		attr.eu = prm_get32(c->in, DPA_THREAD_EU);
	else if (prm_get(c->in, DPA_THREAD_GROUP))
		attr.eu = dpa_eu_of_group(prm_get32(c->in, DPA_THREAD_EU));
	if (attr.eu >= DPA_EUS &&
	    (prm_get(c->in, DPA_THREAD_STRICT) || prm_get(c->in, DPA_THREAD_GROUP)))
		return -EINVAL;
	ret = dpa_handler_create(container_of(process, struct devx_dpa_process, obj.uobj)->process,
				 &attr, &t->handler);
	if (ret < 0)
		return ret;
	devx_obj_init(obj, &devx_dpa_thread_class, id);
	t->shared = (struct dpa_shared){.number = id, .handler = t->handler};
	dpa_share(&t->shared);
	devx_obj_uses(obj, process);
	return 0;
}

static bool names_a_thread(const uint8_t *in)
{
	return prm_get(in, GENERAL_IN_TYPE) == GENERAL_DPA_THREAD;
}

/* The only change that a command can make: the thread may run from now on. */
static int devx_run_dpa_thread(struct devx_call *c)
{
	struct devx_dpa_thread *t = container_of(c->target, struct devx_dpa_thread, obj.uobj);
	struct dpa_pcc *pcc = container_of(t->obj.uses[0], struct devx_dpa_process, obj.uobj)->pcc;
	int ret;

	/* In a process that controls flows, the thread that no queue activates handles them. */
	if (pcc && !t->pcc && !t->obj.uobj.users) {
		ret = dpa_pcc_begin(pcc, t->handler);
		if (ret < 0)
			return ret == -EBUSY ? -ENOSPC : ret;
		t->pcc = pcc;
	}
	ret = dpa_handler_run(t->handler, prm_get(c->in, DPA_THREAD_ARG));
	return ret == -EALREADY ? -EBUSY : ret;
}

static const struct devx_op ops[] = {
	{
		DEVX_ROW(MODIFY_GENERAL_OBJECT, DEVX_OBJ_MODIFY, DPA_THREAD_RUN_BYTES,
			 CMD_OUT_BYTES),
		.class = &devx_dpa_thread_class,
		.number = GENERAL_IN_ID,
		.run = devx_run_dpa_thread,
		.admits = names_a_thread,
	},
};

const struct devx_family devx_dpa_thread_family = DEVX_FAMILY(ops);

/* ---- command queues ---- */

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

/* ---- outboxes ---- */

/* A region for doorbells, under a number of a process. */

/* Gives the number back to its process. */
static void devx_dpa_outbox_free(struct devx_obj *obj)
{
	struct devx_dpa_outbox *o = container_of(obj, struct devx_dpa_outbox, obj);

	dpa_outbox_remove(o->process, obj->number);
}

static const struct devx_class devx_dpa_outbox_class = {.free = devx_dpa_outbox_free};

int devx_create_dpa_outbox(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_dpa_outbox *o = container_of(obj, struct devx_dpa_outbox, obj);
	struct uobj *duar, *process = devx_find(c->file, &devx_dpa_process_class,
						prm_get32(c->in, DPA_OUTBOX_PROCESS));
	int id = devx_uar(c->file, prm_get32(c->in, DPA_OUTBOX_UAR), &duar);

	if (!process)
		return -ENOENT;
	if (id < 0 || !duar)
		return -EINVAL;
	o->process = container_of(process, struct devx_dpa_process, obj.uobj)->process;
	id = dpa_outbox_add(o->process, prm_get32(c->in, DPA_OUTBOX_UAR),
			    prm_get(c->in, DPA_OUTBOX_INITIAL));
	if (id < 0)
		return id;
	if (prm_get(c->in, DPA_OUTBOX_PCC))
		dpa_outbox_allow_congestion(o->process, (uint32_t)id,
					    prm_get(c->in, DPA_OUTBOX_INITIAL));
	devx_obj_init(obj, &devx_dpa_outbox_class, (uint32_t)id);
	/* The object uses the process, so the process lives as long as the object. */
	devx_obj_uses(obj, process);
	devx_obj_uses(obj, duar);
	return 0;
}
