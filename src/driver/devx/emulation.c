// SPDX-License-Identifier: BSD-2-Clause
/* See emulation.h. */
#include "driver/devx/emulation.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/devx/devx.h"
#include "prm/cmd_emulation.h"
#include "prm/model.h"

/* The file's device emulates the function of this number; others are other devices'. */
static bool file_emulates(struct ufile *f)
{
	return ufile_port(f)->ethernet && model_at(f->process->registry->model)->dpa;
}

static bool is_function_of(struct ufile *f, uint32_t vhca)
{
	return file_emulates(f) && vhca == function_vhca(f->hca->index);
}

static uint32_t function_bdf(struct ufile *f)
{
	return EMULATION_BUS << 8 | EMULATION_SLOT << 3 | f->hca->index;
}

/* ---- the list of functions ---- */

static int devx_query_emulated_functions(struct devx_call *c)
{
	uint8_t *entry = c->out + EMULATED_LIST;

	if (!file_emulates(c->file))
		return -EOPNOTSUPP;
	/* The device emulates no other kinds. */
	if (prm_get32(c->in, CMD_IN_OP_MOD) != EMULATED_VIRTIO_NET)
		return 0;
	prm_set(c->out, EMULATED_COUNT, 1);
	if (c->out_len < EMULATED_LIST + EMULATED_ENTRY_BYTES)
		return 0;
	prm_set(entry, EMULATED_ENTRY_BDF, function_bdf(c->file));
	prm_set(entry, EMULATED_ENTRY_VHCA, function_vhca(c->file->hca->index));
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_OTHER(QUERY_EMULATED_FUNCTIONS_INFO, CMD_IN_BYTES, CMD_OUT_BYTES,
		   devx_query_emulated_functions),
};

const struct devx_family devx_emulation_family = DEVX_FAMILY(ops);

/* ---- the function ---- */

static void devx_emulation_free(struct devx_obj *obj)
{
	function_put(container_of(obj, struct devx_emulation, obj)->function);
}

const struct devx_class devx_emulation_class = {.free = devx_emulation_free};

int devx_create_emulation(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_emulation *e = container_of(obj, struct devx_emulation, obj);
	uint32_t vhca = prm_get32(c->in, EMULATION_VHCA);
	int ret;

	if (!file_emulates(c->file))
		return -EOPNOTSUPP;
	if (!is_function_of(c->file, vhca))
		return -EINVAL;
	if (devx_find(c->file, &devx_emulation_class, vhca))
		return -EBUSY;
	ret = function_get(c->file->hca->index, &e->function);
	/* Other objects may name the function by either number. */
	if (ret == 0)
		devx_obj_init(obj, &devx_emulation_class, vhca);
	return ret;
}

int devx_query_emulation(struct devx_call *c)
{
	prm_set(c->out, EMULATION_VHCA, function_vhca(c->file->hca->index));
	prm_set(c->out, EMULATION_ENABLED, 1);
	prm_set(c->out, EMULATION_HAS_EQ, 1);
	prm_set(c->out, EMULATION_HAS_MAPPING, 1);
	prm_set(c->out, EMULATION_DEVICE_ID, EMULATION_DEVICE);
	prm_set(c->out, EMULATION_VENDOR_ID, EMULATION_VENDOR);
	prm_set(c->out, EMULATION_REVISION, 1);
	prm_set(c->out, EMULATION_CLASS_CODE, EMULATION_CLASS);
	prm_set(c->out, EMULATION_MSIX, 1);
	prm_set(c->out, EMULATION_NUM_QUEUES, EMULATION_QUEUES);
	prm_set(c->out, EMULATION_BDF, function_bdf(c->file));
	prm_set(c->out, EMULATION_STRIDE, sizeof(uint32_t));
	return 0;
}

/* ---- its doorbells ---- */

static void db_context_rung(struct function_context *heard)
{
	db_bell_rung(&container_of(heard, struct devx_db_context, heard)->bell);
}

static void devx_db_context_free(struct devx_obj *obj)
{
	struct devx_db_context *d = container_of(obj, struct devx_db_context, obj);

	function_give(d->function, d->queue);
	db_bell_unlink(&d->bell);
	function_put(d->function);
}

const struct devx_class devx_db_context_class = {.free = devx_db_context_free};

static int db_context_make(struct devx_db_context *d)
{
	int handle = db_bell_link(&d->bell), ret;

	if (handle < 0)
		return handle;
	devx_obj_init(&d->obj, &devx_db_context_class, (uint32_t)handle);
	ret = function_take(d->function, d->queue, &d->heard);
	if (ret < 0)
		db_bell_unlink(&d->bell);
	return ret;
}

int devx_create_db_context(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_db_context *d = container_of(obj, struct devx_db_context, obj);
	uint32_t kind = prm_get32(c->in, DB_CQ_KIND);
	struct uobj *cq = devx_find(c->file, &devx_cq_class, prm_get32(c->in, DB_CQ_CQN));
	int ret;

	if (!file_emulates(c->file))
		return -EOPNOTSUPP;
	/* The doorbells of a virtio device's queues are all alike. */
	if (!is_function_of(c->file, prm_get32(c->in, DB_CQ_DEVICE)) ||
	    kind > EMULATED_VIRTIO_NET || prm_get(c->in, DB_CQ_UNMAPPED) ||
	    prm_get(c->in, DB_CQ_QUEUE_TYPE))
		return -EINVAL;
	if (!cq || !devx_cq_region(cq, &d->bell.region))
		return -EINVAL;
	ret = function_get(c->file->hca->index, &d->function);
	if (ret < 0)
		return ret;
	d->queue = prm_get32(c->in, DB_CQ_QUEUE);
	d->bell.cqn = prm_get32(c->in, DB_CQ_CQN);
	d->bell.adapter = c->file->hca->adapter;
	d->bell.function = d->function;
	d->bell.queue = d->queue;
	d->heard.rung = db_context_rung;
	ret = db_context_make(d);
	if (ret < 0) {
		function_put(d->function);
		return ret;
	}
	devx_obj_uses(obj, cq);
	return 0;
}

int devx_query_db_context(struct devx_call *c)
{
	const struct devx_db_context *d = container_of(c->target, struct devx_db_context, obj.uobj);

	prm_set(c->out, DB_CQ_KIND, EMULATED_VIRTIO_NET);
	prm_set(c->out, DB_CQ_DEVICE, function_vhca(c->file->hca->index));
	prm_set(c->out, DB_CQ_QUEUE, d->queue);
	prm_set(c->out, DB_CQ_CQN, d->bell.cqn);
	prm_set(c->out, DB_CQ_HANDLE, d->obj.number);
	return 0;
}

/* ---- its interrupts ---- */

static void devx_emulated_eq_free(struct devx_obj *obj)
{
	function_put(container_of(obj, struct devx_emulated_eq, obj)->function);
}

static const struct devx_class devx_emulated_eq_class = {.free = devx_emulated_eq_free};

struct devx_emulated_eq *devx_emulated_eq_find(struct ufile *f, uint32_t eqn)
{
	struct uobj *obj = devx_find(f, &devx_emulated_eq_class, eqn);

	return obj ? container_of(obj, struct devx_emulated_eq, obj.uobj) : NULL;
}

int devx_create_emulated_eq(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_emulated_eq *eq = container_of(obj, struct devx_emulated_eq, obj);
	uint32_t number = EMULATED_EQN_FIRST;
	int ret;

	if (!file_emulates(c->file))
		return -EOPNOTSUPP;
	if (!is_function_of(c->file, prm_get32(c->in, EMULATED_EQ_DEVICE)))
		return -EINVAL;
	if (prm_get(c->in, EMULATED_EQ_VECTOR)) {
		log_info("devx: an emulated function has one interrupt, number 0");
		return -EINVAL;
	}
	while (number <= UINT8_MAX && devx_emulated_eq_find(c->file, number))
		number++;
	if (number > UINT8_MAX)
		return -ENOSPC;
	ret = function_get(c->file->hca->index, &eq->function);
	if (ret == 0)
		devx_obj_init(obj, &devx_emulated_eq_class, number);
	return ret;
}
