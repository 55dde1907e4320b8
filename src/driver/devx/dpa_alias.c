// SPDX-License-Identifier: BSD-2-Clause
/*
 * A command looks up numbers of other objects in its own file.  A program may have a process of the
 * DPA in one file and queues, keys and windows in another: there an alias stands for the process,
 * or for one of its threads, under the same number.
 *
 * An alias may outlive the object that it stands for.  Its memory stays as long as an alias holds
 * it; a thread that has gone hears nothing.
 */
#include "driver/devx/dpa_alias.h"

#include <errno.h>

#include "driver/devx/dpa.h"
#include "prm/cmd_dpa.h"
#include "prm/model.h"

static struct devx_dpa_alias *alias_of(struct devx_obj *obj)
{
	return container_of(obj, struct devx_dpa_alias, obj);
}

static void dpa_alias_process_free(struct devx_obj *obj)
{
	dpa_process_put(alias_of(obj)->process);
}

static void *dpa_alias_process_part(struct devx_obj *obj, uint64_t daddr, uint64_t bytes)
{
	return dpa_memory_part(alias_of(obj)->process, daddr, bytes);
}

static const struct devx_class dpa_alias_process_class = {
	.free = dpa_alias_process_free,
	.part = dpa_alias_process_part,
};

struct dpa_process *devx_dpa_alias_find(struct devx_call *c, uint32_t number, struct uobj **uobj)
{
	struct devx_dpa_process *own;

	if (devx_dpa_process_find(c, number, &own) == 0) {
		*uobj = &own->obj.uobj;
		return own->process;
	}
	*uobj = devx_find(c->file, &dpa_alias_process_class, number);
	return *uobj ? container_of(*uobj, struct devx_dpa_alias, obj.uobj)->process : NULL;
}

static void dpa_alias_thread_activate(struct devx_obj *obj)
{
	dpa_shared_handler_activate(obj->number);
}

static const struct devx_class dpa_alias_thread_class = {.activate = dpa_alias_thread_activate};

int devx_create_dpa_alias(struct devx_call *c, struct devx_obj *obj)
{
	uint32_t number = prm_get32(c->in, DPA_ALIAS_NUMBER);

	if (!model_at(c->file->process->registry->model)->dpa)
		return -EOPNOTSUPP;
	if (prm_get(c->in, DPA_ALIAS_THREAD)) {
		if (!dpa_shared_handler_exists(number))
			return -ENOENT;
		devx_obj_init(obj, &dpa_alias_thread_class, number);
		return 0;
	}
	alias_of(obj)->process = dpa_shared_process(number);
	if (!alias_of(obj)->process)
		return -ENOENT;
	devx_obj_init(obj, &dpa_alias_process_class, number);
	return 0;
}
