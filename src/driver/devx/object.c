// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the files with commands share: identity and destruction of objects, the objects that each
 * was made of, and checks of a command's fields.
 */
#include "driver/devx/devx.h"

#include <errno.h>
#include <stdlib.h>

#include "driver/uverbs/core/object.h"
#include "prm/cmd_qp.h"

/* ---- objects ---- */

void devx_obj_init(struct devx_obj *obj, const struct devx_class *class, uint32_t number)
{
	obj->class = class;
	obj->number = number;
}

void devx_obj_uses(struct devx_obj *obj, struct uobj *used)
{
	for (unsigned i = 0; i < DEVX_USES; i++)
		if (!obj->uses[i]) {
			obj->uses[i] = used;
			used->users++;
			return;
		}
}

void devx_obj_release(struct devx_obj *obj)
{
	for (unsigned i = 0; i < DEVX_USES && obj->uses[i]; i++)
		obj->uses[i]->users--;
}

static void udevx_free(struct uobj *uobj)
{
	struct devx_obj *obj = container_of(uobj, struct devx_obj, uobj);

	if (obj->class->free)
		obj->class->free(obj);
	devx_events_drop(obj);
	devx_obj_release(obj);
}

static struct qp *udevx_takes_frames(struct uobj *uobj)
{
	struct devx_obj *obj = container_of(uobj, struct devx_obj, uobj);

	return obj->class->takes_frames ? obj->class->takes_frames(obj) : NULL;
}

static struct flow_table *udevx_table(struct uobj *uobj)
{
	struct devx_obj *obj = container_of(uobj, struct devx_obj, uobj);

	return obj->class->table ? obj->class->table(obj) : NULL;
}

static struct flow_counter *udevx_counter(struct uobj *uobj)
{
	struct devx_obj *obj = container_of(uobj, struct devx_obj, uobj);

	return obj->class->counter ? obj->class->counter(obj) : NULL;
}

static uint32_t udevx_number(struct uobj *uobj)
{
	return container_of(uobj, struct devx_obj, uobj)->number;
}

const struct uobj_class udevx_class = {
	.type = UOBJ_DEVX,
	.free = udevx_free,
	.takes_frames = udevx_takes_frames,
	.table = udevx_table,
	.counter = udevx_counter,
	.number = udevx_number,
};

void devx_discard(struct ufile *f, struct devx_obj *obj)
{
	obj->uobj.file = f;
	udevx_free(&obj->uobj);
	free(obj);
}

bool devx_is_numbered(struct uobj *obj, uint32_t number)
{
	return obj->type == UOBJ_DEVX && container_of(obj, struct devx_obj, uobj)->number == number;
}

bool devx_is(struct uobj *obj, const struct devx_class *class, uint32_t number)
{
	if (obj->type == UOBJ_DEVX) {
		const struct devx_obj *d = container_of(obj, struct devx_obj, uobj);

		return d->class == class && d->number == number;
	}
	return class->is && class->is(obj, number);
}

struct uobj *devx_find(struct ufile *f, const struct devx_class *class, uint32_t number)
{
	struct uobj *obj;

	for (obj = uobj_numbered(&f->objects, number); obj; obj = obj->alike_next)
		if (devx_is(obj, class, number))
			break;
	return obj;
}

uint32_t devx_free_number(struct ufile *f, const struct devx_class *class)
{
	uint32_t number = 1;

	while (devx_find(f, class, number))
		number++;
	return number;
}

struct devx_obj *devx_find_fitting(struct ufile *f, devx_fits *fits, uint32_t number)
{
	struct uobj *uobj;

	for (uobj = uobj_numbered(&f->objects, number); uobj; uobj = uobj->alike_next) {
		struct devx_obj *obj = container_of(uobj, struct devx_obj, uobj);

		if (uobj->type == UOBJ_DEVX && fits(obj->class))
			return obj;
	}
	return NULL;
}

/* ---- checks of fields ---- */

int devx_check_lacks(const uint8_t *context, const struct devx_lack *lacks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = prm_get(context, lacks[i].field);

		if (value)
			return devx_refuse(-EOPNOTSUPP, lacks[i].name, value,
					   "the device has 0 alone");
	}
	return 0;
}

struct devx_part devx_wq_ring(const uint8_t *wq)
{
	return (struct devx_part){
		.field = "wq_umem_offset",
		.umem_id = prm_get32(wq, WQ_UMEM),
		.offset = prm_get(wq, WQ_OFFSET),
		.length = 1ull << (prm_get32(wq, WQ_LOG_SIZE) + prm_get32(wq, WQ_LOG_STRIDE)),
	};
}

struct devx_part devx_wq_record(const uint8_t *wq, uint64_t bytes)
{
	return (struct devx_part){
		.field = "dbr_addr",
		.umem_id = prm_get32(wq, WQ_DBR_UMEM),
		.offset = prm_get(wq, WQ_DBR_ADDR),
		.length = bytes,
	};
}

static const struct devx_lack ring_lacks[] = {{WQ_SIGNATURE, "wq_signature"},
					      {WQ_PAGE_OFFSET, "page_offset"}};

int devx_wq_check_lacks(const uint8_t *wq)
{
	return devx_lacks(wq, ring_lacks);
}

int devx_raw_check_ring(const uint8_t *wq)
{
	if (prm_get(wq, WQ_TYPE) != WQ_CYCLIC)
		return devx_refuse(-EOPNOTSUPP, "wq_type", prm_get(wq, WQ_TYPE),
				   "the device has 1 (cyclic)");
	return devx_wq_check_lacks(wq);
}

int devx_raw_check_port(const struct ufile *f)
{
	return ufile_port(f)->ethernet
		       ? 0
		       : explained(-EOPNOTSUPP, "such queues are for frames, and the port is of "
						"InfiniBand");
}

int devx_at_most(const char *field, uint64_t value, uint64_t max)
{
	if (value <= max)
		return 0;
	return explained(-EINVAL, "%s is %llu: %llu is the largest", field,
			 (unsigned long long)value, (unsigned long long)max);
}

int devx_named(struct ufile *f, const struct devx_class *class, uint32_t number, const char *field,
	       struct uobj **obj)
{
	*obj = devx_find(f, class, number);
	return *obj ? 0
		    : devx_refuse(-EINVAL, field, number,
				  "no such object of this context has that number");
}
