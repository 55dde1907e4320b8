// SPDX-License-Identifier: BSD-2-Clause
/* Outboxes of the DPA: a region for doorbells, under a number of a process. */
#include "driver/devx/dpa_outbox.h"

#include <errno.h>

#include "driver/devx/dpa.h"
#include "driver/devx/duar.h"
#include "prm/cmd_dpa.h"

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
