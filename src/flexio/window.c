// SPDX-License-Identifier: BSD-2-Clause
/* Windows to memory of the host, and keys of memory of the DPA. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/internal.h"
#include "prm/cmd.h"
#include "prm/cmd_mkey.h"

#define KEY_VARIANT 0x2au
#define KEY_ANY_QPN 0xffffffu
#define LOG_PAGE    12u

struct flexio_window {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	struct flx_alias *alias; /* for the process, if the domain belongs to another context */
	uint32_t number;
};

struct flexio_mkey {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	struct flx_alias *alias; /* as in a window */
	uint32_t key;
};

bool flx_pd_number(struct ibv_pd *pd, const char *function, const char *argument, uint32_t *pdn)
{
	struct mlx5dv_pd out = {0};
	struct mlx5dv_obj obj = {.pd = {.in = pd, .out = &out}};

	if (!flx_given(pd, function, argument))
		return false;
	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD)) {
		flx_fail(function, "%s: it is of no device with a DPA", argument);
		return false;
	}
	*pdn = out.pdn;
	return true;
}

/* False: the device of another context cannot reach the process. */
static bool pd_alias(const struct flexio_process *p, const struct ibv_pd *pd, const char *function,
		     const char *argument, struct flx_alias **alias)
{
	*alias = NULL;
	if (pd->context == p->ctx)
		return true;
	*alias = flx_alias_get(pd->context, p, 0);
	if (!*alias)
		flx_fail(function,
			 "%s: it is of another context than the process, which does not reach it: "
			 "%s",
			 argument, strerror(errno));
	return *alias;
}

/* ---- windows ---- */

static void window_destroy(struct flx_object *o)
{
	struct flexio_window *w = container_of(o, struct flexio_window, object);

	(void)mlx5dv_devx_obj_destroy(w->devx);
	flx_alias_put(w->alias);
	free(w);
}

flexio_status flexio_window_create(struct flexio_process *process, struct ibv_pd *pd,
				   struct flexio_window **window)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_WINDOW_IN_BYTES] = {0};
	struct flexio_window *w;
	uint32_t pdn;
	int err;

	if (!flx_given(window, __func__, "window"))
		return FLEXIO_STATUS_FAILED;
	*window = NULL;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_pd_number(pd, __func__, "pd", &pdn))
		return FLEXIO_STATUS_FAILED;
	w = calloc(1, sizeof(*w));
	if (!w)
		return flx_fail(__func__, "no memory");
	if (!pd_alias(process, pd, __func__, "pd", &w->alias)) {
		free(w);
		return FLEXIO_STATUS_FAILED;
	}
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_WINDOW);
	prm_set(in, DPA_WINDOW_PROCESS, process->number);
	prm_set(in, DPA_WINDOW_PD, pdn);
	w->devx = flx_devx_create(pd->context, in, sizeof(in), &w->number);
	if (!w->devx) {
		err = errno;
		flx_alias_put(w->alias);
		free(w);
		return flx_refused(process, __func__, err);
	}
	w->object.destroy = window_destroy;
	flx_object_add(&w->object, FLX_WINDOW, process);
	*window = w;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_window_destroy(struct flexio_window *window)
{
	FLX_HOLD(hold);

	if (!flx_claim(&hold, window, FLX_WINDOW, __func__, "window"))
		return FLEXIO_STATUS_FAILED;
	window_destroy(&window->object);
	return FLEXIO_STATUS_SUCCESS;
}

uint32_t flexio_window_get_id(struct flexio_window *window)
{
	FLX_HOLD(hold);

	return flx_check(&hold, window, FLX_WINDOW, __func__, "window") ? window->number
									: UINT32_MAX;
}

/* ---- keys ---- */

static void mkey_destroy(struct flx_object *o)
{
	struct flexio_mkey *k = container_of(o, struct flexio_mkey, object);

	(void)mlx5dv_devx_obj_destroy(k->devx);
	flx_alias_put(k->alias);
	free(k);
}

static bool mkey_attr_check(const struct flexio_mkey_attr *attr, const char *function)
{
	const int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			  IBV_ACCESS_RELAXED_ORDERING;

	if (attr->access & ~known) {
		flx_fail(function, "fattr->access: 0x%x has unknown rights",
			 (unsigned)attr->access);
		return false;
	}
	if (!attr->len)
		flx_fail(function, "fattr->len: it is 0");
	return attr->len;
}

/* The device knows the heap of the process, and not its buffers. */
static flexio_status mkey_refused(const struct flexio_process *p,
				  const struct flexio_mkey_attr *attr, const char *function,
				  int err)
{
	if (err != EINVAL)
		return flx_refused(p, function, err);
	return flx_fail(function,
			"fattr->daddr: 0x%llx and fattr->len: %zu bytes are not all in the heap "
			"of the process",
			(unsigned long long)attr->daddr, attr->len);
}

static void mkey_piece_check(struct flexio_process *p, const struct flexio_mkey_attr *attr,
			     uint32_t key, const char *function)
{
	const struct flx_piece piece = {"memory", "key", key, attr->daddr, attr->len};

	flx_piece_check(p, function, "fattr->daddr", &piece);
}

static void mkey_fill(uint8_t *in, const struct flexio_process *p,
		      const struct flexio_mkey_attr *attr, uint32_t pdn)
{
	uint8_t *context = in + CREATE_MKEY_CONTEXT;

	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_MKEY);
	prm_set(in, CREATE_MKEY_UMEM, DPA_UMEM + p->number);
	prm_set(in, CREATE_MKEY_OFFSET, attr->daddr);
	prm_set(context, MKC_ACCESS_MODE_LOW, MKC_MODE_MTT);
	prm_set(context, MKC_LOCAL_READ, 1);
	prm_set(context, MKC_LOCAL_WRITE, !!(attr->access & IBV_ACCESS_LOCAL_WRITE));
	prm_set(context, MKC_REMOTE_WRITE, !!(attr->access & IBV_ACCESS_REMOTE_WRITE));
	prm_set(context, MKC_REMOTE_READ, !!(attr->access & IBV_ACCESS_REMOTE_READ));
	prm_set(context, MKC_ATOMIC, !!(attr->access & IBV_ACCESS_REMOTE_ATOMIC));
	prm_set(context, MKC_QPN, KEY_ANY_QPN);
	prm_set(context, MKC_VARIANT, KEY_VARIANT);
	prm_set(context, MKC_PD, pdn);
	prm_set(context, MKC_START, attr->daddr);
	prm_set(context, MKC_LENGTH, attr->len);
	prm_set(context, MKC_LOG_ENTRY_BYTES, LOG_PAGE);
}

flexio_status flexio_device_mkey_create(struct flexio_process *process,
					struct flexio_mkey_attr *fattr, struct flexio_mkey **mkey)
{
	FLX_HOLD(hold);
	uint8_t in[CREATE_MKEY_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	struct flexio_mkey *k;
	uint32_t pdn;
	int err;

	if (!flx_given(mkey, __func__, "mkey"))
		return FLEXIO_STATUS_FAILED;
	*mkey = NULL;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given(fattr, __func__, "fattr") ||
	    !flx_pd_number(fattr->pd, __func__, "fattr->pd", &pdn) ||
	    !mkey_attr_check(fattr, __func__))
		return FLEXIO_STATUS_FAILED;
	k = calloc(1, sizeof(*k));
	if (!k)
		return flx_fail(__func__, "no memory");
	if (!pd_alias(process, fattr->pd, __func__, "fattr->pd", &k->alias)) {
		free(k);
		return FLEXIO_STATUS_FAILED;
	}
	mkey_fill(in, process, fattr, pdn);
	k->devx = mlx5dv_devx_obj_create(fattr->pd->context, in, sizeof(in), out, sizeof(out));
	if (!k->devx) {
		err = flx_devx_errno(errno, out);
		flx_alias_put(k->alias);
		free(k);
		return mkey_refused(process, fattr, __func__, err);
	}
	k->key = prm_get32(out, CMD_OUT_NUMBER) << 8 | KEY_VARIANT;
	k->object.destroy = mkey_destroy;
	flx_object_add(&k->object, FLX_MKEY, process);
	mkey_piece_check(process, fattr, k->key, __func__);
	*mkey = k;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_device_mkey_destroy(struct flexio_mkey *mkey)
{
	FLX_HOLD(hold);

	if (!mkey)
		return FLEXIO_STATUS_SUCCESS;
	if (!flx_claim(&hold, mkey, FLX_MKEY, __func__, "mkey"))
		return FLEXIO_STATUS_FAILED;
	mkey_destroy(&mkey->object);
	return FLEXIO_STATUS_SUCCESS;
}

uint32_t flexio_mkey_get_id(struct flexio_mkey *mkey)
{
	FLX_HOLD(hold);

	return flx_check(&hold, mkey, FLX_MKEY, __func__, "mkey") ? mkey->key : UINT32_MAX;
}
