// SPDX-License-Identifier: BSD-2-Clause
/*
 * Regions for doorbells of a DPA.  Its outboxes ring by value and name the region of the queue, so
 * such a region is a number without a page, and nobody has to watch it.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "dpa/outbox.h"
#include "driver/devx/devx.h"
#include "driver/devx/eq.h"
#include "driver/emulation/function.h"
#include "driver/uverbs/objects/objects.h"

/* The first number for which queues have no room. */
#define DUAR_NUMBERS (1u << 24)
#define DUAR_FIRST   (1u << 20)

static_assert(DUAR_FIRST >= UVERBS_UARS, "numbers of pages are others");

static void duar_arm(void *device, uint32_t region, uint32_t cqn, uint32_t ci)
{
	(void)cq_bell_arm(device, region, cqn, ci);
}

static void duar_empty(void *device, uint32_t region, uint32_t cqn)
{
	(void)cq_bell_empty(device, region, cqn);
}

static void duar_send(void *device, uint32_t region, uint32_t qpn, uint16_t pi)
{
	(void)qp_bell(device, region, qpn, pi);
}

static void duar_event(void *device, uint32_t region, uint32_t eqn, uint32_t ci)
{
	(void)device; /* no two devices have a region of the same number */
	eq_bell(region, eqn, ci);
}

static void duar_emulated(void *device, uint32_t region, uint32_t cqn, uint32_t context, bool force)
{
	(void)device; /* as above */
	db_bell_ring(region, cqn, context, force);
}

static uint32_t duar_emulated_value(uint32_t region, uint32_t context)
{
	return db_bell_value(region, context);
}

static const struct dpa_bells duar_bells = {
	.arm = duar_arm,
	.empty = duar_empty,
	.send = duar_send,
	.event = duar_event,
	.emulated = duar_emulated,
	.emulated_value = duar_emulated_value,
};

static void devx_duar_free(struct devx_obj *obj)
{
	dpa_uar_remove(obj->number);
}

static const struct devx_class devx_duar_class = {.free = devx_duar_free};

int devx_create_duar(struct devx_call *c, struct devx_obj *obj)
{
	/* Counts for the whole process, because a program may give an outbox to queues of another
	 * context.  No number comes twice, so that no bell reaches the queue of a later region. */
	static _Atomic(uint32_t) used;
	uint32_t n = atomic_load(&used);
	int ret;

	do {
		if (n >= DUAR_NUMBERS - DUAR_FIRST)
			return -ENOSPC;
	} while (!atomic_compare_exchange_weak(&used, &n, n + 1));
	ret = dpa_uar_add(&(struct dpa_uar){
		.bells = &duar_bells,
		.device = c->file->hca->adapter,
		.number = DUAR_FIRST + n,
	});
	if (ret == 0)
		devx_obj_init(obj, &devx_duar_class, DUAR_FIRST + n);
	return ret;
}

int devx_uar(struct ufile *f, uint32_t number, struct uobj **duar)
{
	*duar = NULL;
	if (uuar_regs(f, number))
		return 0;
	*duar = devx_find(f, &devx_duar_class, number);
	return *duar ? 0
		     : devx_refuse(-EINVAL, "uar_page", number,
				   "no UAR of this context has that number");
}
