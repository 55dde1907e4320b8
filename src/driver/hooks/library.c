// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions of libibverbs and libmlx5 through which contexts, extended CQs and QPs appear.  The
 * preload library exports these under the same names; they pass on to the real ones and put hooks
 * into what those return.
 *
 * We do not link libibverbs, because the preload library is in every program.  We ask the loaded
 * library for the real functions by name and version, because RTLD_NEXT does not see a libibverbs
 * that a Python extension brought in with local scope.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "driver/file/cdev_file.h"
#include "driver/hooks/hooks.h"
#include "driver/hooks/library.h"
#include "driver/hooks/object_hooks.h"

/* ---- the libraries' own functions ---- */

static const struct {
	const char *library;
	const char *name;
	const char *version;
} real_names[REAL_FUNCTIONS] = {
	[REAL_OPEN_DEVICE] = {"libibverbs.so.1", "ibv_open_device", "IBVERBS_1.1"},
	[REAL_IMPORT_DEVICE] = {"libibverbs.so.1", "ibv_import_device", "IBVERBS_1.10"},
	[REAL_MODIFY_QP] = {"libibverbs.so.1", "ibv_modify_qp", "IBVERBS_1.1"},
	[REAL_QP_TO_QP_EX] = {"libibverbs.so.1", "ibv_qp_to_qp_ex", "IBVERBS_1.6"},
	[REAL_DV_OPEN_DEVICE] = {"libmlx5.so.1", "mlx5dv_open_device", "MLX5_1.7"},
	[REAL_DV_CREATE_CQ] = {"libmlx5.so.1", "mlx5dv_create_cq", "MLX5_1.1"},
	[REAL_DV_CREATE_WQ] = {"libmlx5.so.1", "mlx5dv_create_wq", "MLX5_1.3"},
	[REAL_DV_INIT_OBJ] = {"libmlx5.so.1", "mlx5dv_init_obj", "MLX5_1.2"},
	[REAL_DV_DEVX_QP_MODIFY] = {"libmlx5.so.1", "mlx5dv_devx_qp_modify", "MLX5_1.8"},
	[REAL_DV_DEVX_UMEM_REG] = {"libmlx5.so.1", "mlx5dv_devx_umem_reg", "MLX5_1.7"},
	[REAL_DV_DEVX_UMEM_DEREG] = {"libmlx5.so.1", "mlx5dv_devx_umem_dereg", "MLX5_1.7"},
	[REAL_DV_DEVX_OBJ_CREATE] = {"libmlx5.so.1", "mlx5dv_devx_obj_create", "MLX5_1.7"},
	[REAL_DV_DEVX_OBJ_DESTROY] = {"libmlx5.so.1", "mlx5dv_devx_obj_destroy", "MLX5_1.7"},
	[REAL_DV_ALLOC_MSI] = {"libmlx5.so.1", "mlx5dv_devx_alloc_msi_vector", "MLX5_1.23"},
	[REAL_DV_FREE_MSI] = {"libmlx5.so.1", "mlx5dv_devx_free_msi_vector", "MLX5_1.23"},
	[REAL_DV_CREATE_EQ] = {"libmlx5.so.1", "mlx5dv_devx_create_eq", "MLX5_1.23"},
	[REAL_DV_DESTROY_EQ] = {"libmlx5.so.1", "mlx5dv_devx_destroy_eq", "MLX5_1.23"},
};

void *real_function(enum real_function f)
{
	static _Atomic(void *) addresses[REAL_FUNCTIONS];
	void *address = atomic_load_explicit(&addresses[f], memory_order_relaxed);

	if (!address) {
		/* We keep the handle: the library must not go while we know its addresses. */
		void *library = dlopen(real_names[f].library, RTLD_NOLOAD | RTLD_LAZY);

		/* Python wheels bring the library under another name. */
		address = dlvsym(library ? library : RTLD_NEXT, real_names[f].name,
				 real_names[f].version);
		if (!address)
			errno = ENOSYS;
		atomic_store_explicit(&addresses[f], address, memory_order_relaxed);
	}
	return address;
}

/* ---- where contexts, CQs and QPs appear ---- */

static struct ibv_context *context_hooked(struct ibv_context *context)
{
	if (context)
		hooks_context(context);
	return context;
}

exported struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	__typeof__(&ibv_open_device) real = REAL(REAL_OPEN_DEVICE, ibv_open_device);

	return real ? context_hooked(real(device)) : NULL;
}

exported struct ibv_context *ibv_import_device(int cmd_fd)
{
	__typeof__(&ibv_import_device) real = REAL(REAL_IMPORT_DEVICE, ibv_import_device);

	return real ? context_hooked(real(cmd_fd)) : NULL;
}

exported struct ibv_context *mlx5dv_open_device(struct ibv_device *device,
						struct mlx5dv_context_attr *attr)
{
	__typeof__(&mlx5dv_open_device) real = REAL(REAL_DV_OPEN_DEVICE, mlx5dv_open_device);

	return real ? context_hooked(real(device, attr)) : NULL;
}

exported struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context,
					    struct ibv_cq_init_attr_ex *cq_attr,
					    struct mlx5dv_cq_init_attr *mlx5_cq_attr)
{
	__typeof__(&mlx5dv_create_cq) real = REAL(REAL_DV_CREATE_CQ, mlx5dv_create_cq);
	struct ibv_cq_ex *cq = real ? real(context, cq_attr, mlx5_cq_attr) : NULL;

	if (cq && cdev_table_load(context->cmd_fd))
		hooks_cq_ex(cq);
	return cq;
}

exported struct ibv_wq *mlx5dv_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr,
					 struct mlx5dv_wq_init_attr *mlx5_wq_attr)
{
	__typeof__(&mlx5dv_create_wq) real = REAL(REAL_DV_CREATE_WQ, mlx5dv_create_wq);
	struct ibv_wq *wq = real ? real(context, attr, mlx5_wq_attr) : NULL;

	if (wq && cdev_table_load(context->cmd_fd))
		hooks_wq(wq);
	return wq;
}

/* The program takes rings and registers into its own hands: no hook will announce its doorbells. */
exported int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	__typeof__(&mlx5dv_init_obj) real = REAL(REAL_DV_INIT_OBJ, mlx5dv_init_obj);
	int ret = real ? real(obj, obj_type) : ENOSYS;

	if (ret)
		return ret;
	if (obj_type & MLX5DV_OBJ_QP)
		uverbs_qp_taken_over(obj->qp.in->context->cmd_fd, obj->qp.in->handle);
	if (obj_type & MLX5DV_OBJ_CQ)
		uverbs_cq_taken_over(obj->cq.in->context->cmd_fd, obj->cq.in->handle);
	return 0;
}

/* libmlx5 writes the pointers anew when the QP comes to RTS, even from RTS. */
static void hook_qp_again(struct ibv_qp *qp)
{
	__typeof__(&ibv_qp_to_qp_ex) to_qp_ex = REAL(REAL_QP_TO_QP_EX, ibv_qp_to_qp_ex);
	struct ibv_qp_ex *qp_ex = to_qp_ex ? to_qp_ex(qp) : NULL;

	if (qp_ex && cdev_table_load(qp->context->cmd_fd))
		hooks_qp_ex(qp_ex);
}

exported int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	__typeof__(&ibv_modify_qp) real = REAL(REAL_MODIFY_QP, ibv_modify_qp);
	int ret = real ? real(qp, attr, attr_mask) : ENOSYS;

	if (!ret && attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTS)
		hook_qp_again(qp);
	return ret;
}

/* Many functions of libmlx5 modify queue pairs through this one, and call it as a program does. */
exported int mlx5dv_devx_qp_modify(struct ibv_qp *qp, const void *in, size_t inlen, void *out,
				   size_t outlen)
{
	__typeof__(&mlx5dv_devx_qp_modify) real =
		REAL(REAL_DV_DEVX_QP_MODIFY, mlx5dv_devx_qp_modify);
	int ret = real ? real(qp, in, inlen, out, outlen) : ENOSYS;

	if (!ret)
		hook_qp_again(qp);
	return ret;
}
