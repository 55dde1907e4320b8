// SPDX-License-Identifier: BSD-2-Clause
/* Threads of the DPA: event handlers, which completion queues activate. */
#include "driver/devx/dpa_thread.h"

#include <errno.h>

#include "dpa/eu.h"
#include "driver/devx/dpa.h"
#include "driver/devx/dpa_pcc.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd.h"

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
