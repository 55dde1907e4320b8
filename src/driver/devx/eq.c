// SPDX-License-Identifier: BSD-2-Clause
/* Event queues that a program makes, as objects: CREATE_EQ, QUERY_EQ, and their registers. */
#include "driver/devx/eq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver/devx/devx.h"
#include "driver/devx/emulation.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/cmd_cq_eq.h"

/* The doorbell has 8 bits for the number; from here on they belong to emulated functions. */
#define EQ_NUMBERS EMULATED_EQN_FIRST
/* libmlx5 and mlx5_core make no longer queues. */
#define EQ_LOG_MAX 22u

struct devx_eq {
	struct devx_obj obj;
	struct eq_ring ring;
	struct doorbell_user bell;
};

void devx_eq_push(struct devx_eq *eq, const uint8_t eqe[EQE_BYTES])
{
	eq_push(&eq->ring, eqe);
}

/* The caller holds the doorbells' lock, which also guards the values of the registers. */
static void eq_rung(struct doorbell_user *u)
{
	struct devx_eq *eq = container_of(u, struct devx_eq, bell);

	for (unsigned arms = 0; arms < 2; arms++) {
		uint32_t value = be32toh(doorbell_eq_value(u, arms));

		if (value >> 24 != eq->obj.number)
			continue;
		doorbell_eq_take(u, arms);
		eq_consumed(&eq->ring, value, arms);
	}
}

static void devx_eq_free(struct devx_obj *obj)
{
	struct devx_eq *eq = container_of(obj, struct devx_eq, obj);

	eq_unlink(&eq->ring);
	doorbell_user_release(&eq->bell);
	hidden_close(&eq->ring.vector);
}

static const struct devx_class devx_eq_class = {.free = devx_eq_free};

struct devx_eq *devx_eq_find(struct ufile *f, uint32_t eqn)
{
	struct uobj *obj = devx_find(f, &devx_eq_class, eqn);

	return obj ? container_of(obj, struct devx_eq, obj.uobj) : NULL;
}

struct uobj *devx_eq_uobj(struct devx_eq *eq)
{
	return &eq->obj.uobj;
}

/* Returns a number above those of the completion vectors; -ENOSPC. */
static int eq_free_number(struct ufile *f)
{
	uint32_t n = DEVX_EQN_FIRST + uverbs_comp_vectors();

	while (n < EQ_NUMBERS && devx_eq_find(f, n))
		n++;
	return n < EQ_NUMBERS ? (int)n : explained(-ENOSPC, "all %u numbers are in use", n);
}

/* Keeps the program's descriptor under a number that the program does not know. */
static int eq_keep_vector(struct eq_ring *eq, uint32_t fd)
{
	int copy;

	eq->vector = HIDDEN_NONE;
	if (!fd)
		return 0;
	copy = fcntl((int)(fd - 1), F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return devx_refuse(-EINVAL, "intr", fd, "it is no vector of this process");
	eq->vector = hidden_keep(copy);
	return 0;
}

static int eq_make(struct devx_call *c, struct devx_eq *eq)
{
	const uint8_t *eqc = c->in + CREATE_EQ_CONTEXT;
	struct eq_ring *r = &eq->ring;
	struct devx_part ring = {
		.field = "eq_umem_offset",
		.umem_id = prm_get32(c->in, CREATE_EQ_UMEM),
		.offset = prm_get(c->in, CREATE_EQ_OFFSET),
	};
	struct uobj *umem, *duar;
	int number, ret;

	ret = devx_at_most("log_eq_size", prm_get(eqc, EQC_LOG_SIZE), EQ_LOG_MAX);
	if (ret < 0)
		return ret;
	if (prm_get(eqc, EQC_PAGE_OFFSET))
		return devx_refuse(-EINVAL, "page_offset", prm_get(eqc, EQC_PAGE_OFFSET),
				   "the device has 0 alone");
	r->file = c->file;
	r->entries = 1u << prm_get32(eqc, EQC_LOG_SIZE);
	r->region = prm_get32(eqc, EQC_UAR_PAGE);
	r->armed = prm_get(eqc, EQC_STATE) == EQC_STATE_ARMED;
	r->overrun_ignore = prm_get(eqc, EQC_OVERRUN_IGNORE);
	for (unsigned i = 0; i < array_size(r->events); i++)
		r->events[i] = prm_get(c->in + CREATE_EQ_EVENTS + 8 * i, PRM_FIELD(0, 64));
	ring.length = (uint64_t)r->entries * EQE_BYTES;
	r->entry = devx_umem_part(c->file, &ring, true, &umem);
	if (!r->entry || devx_uar(c->file, r->region, &duar) < 0)
		return -EINVAL;
	number = eq_free_number(c->file);
	if (number < 0)
		return number;
	ret = eq_keep_vector(r, prm_get32(c->in, CREATE_EQ_VECTOR));
	if (ret < 0)
		return ret;
	r->number = (uint32_t)number;
	devx_obj_init(&eq->obj, &devx_eq_class, r->number);
	devx_obj_uses(&eq->obj, umem);
	if (duar)
		devx_obj_uses(&eq->obj, duar);
	return 0;
}

static int devx_create_eq(struct devx_call *c, struct devx_obj **out)
{
	struct devx_eq *eq = calloc(1, sizeof(*eq));
	int ret;

	if (!eq)
		return -ENOMEM;
	ret = eq_make(c, eq);
	if (ret < 0) {
		free(eq);
		return ret;
	}
	eq_link(&eq->ring);
	doorbell_user_init(&eq->bell, DOORBELL_EQ, uuar_regs(c->file, eq->ring.region), eq_rung);
	doorbell_taken_over(&eq->bell);
	prm_set(c->out, CREATE_EQ_OUT_EQN, eq->obj.number);
	*out = &eq->obj;
	return 0;
}

static int devx_query_eq(struct devx_call *c)
{
	struct eq_ring *eq = &container_of(c->target, struct devx_eq, obj.uobj)->ring;
	uint8_t *eqc = c->out + QUERY_EQ_CONTEXT;

	spin_lock(&eq->lock);
	prm_set(eqc, EQC_STATUS, eq->overrun ? EQC_STATUS_OVERFLOW : EQC_STATUS_OK);
	prm_set(eqc, EQC_OVERRUN_IGNORE, eq->overrun_ignore);
	prm_set(eqc, EQC_STATE, eq->armed ? EQC_STATE_ARMED : EQC_STATE_FIRED);
	prm_set(eqc, EQC_LOG_SIZE, 31u - (unsigned)__builtin_clz(eq->entries));
	prm_set(eqc, EQC_UAR_PAGE, eq->region);
	prm_set(eqc, EQC_CONSUMER, eq->ci);
	prm_set(eqc, EQC_PRODUCER, eq->pi);
	spin_unlock(&eq->lock);
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_EQ, CREATE_EQ_IN_BYTES, CMD_OUT_BYTES, devx_create_eq),
	{
		DEVX_ROW(QUERY_EQ, DEVX_OBJ_QUERY, CMD_IN_BYTES, QUERY_EQ_OUT_BYTES),
		.class = &devx_eq_class,
		.number = QUERY_EQ_EQN,
		.run = devx_query_eq,
	},
};

const struct devx_family devx_eq_family = DEVX_FAMILY(ops);
