/* SPDX-License-Identifier: BSD-2-Clause */
/* The real functions of libibverbs and libmlx5, for the functions that the preload library exports
 * under their names. */
#pragma once

enum real_function {
	REAL_OPEN_DEVICE,
	REAL_IMPORT_DEVICE,
	REAL_MODIFY_QP,
	REAL_QP_TO_QP_EX,
	REAL_DV_OPEN_DEVICE,
	REAL_DV_CREATE_CQ,
	REAL_DV_CREATE_WQ,
	REAL_DV_INIT_OBJ,
	REAL_DV_DEVX_QP_MODIFY,
	REAL_DV_DEVX_UMEM_REG,
	REAL_DV_DEVX_UMEM_DEREG,
	REAL_DV_DEVX_OBJ_CREATE,
	REAL_DV_DEVX_OBJ_DESTROY,
	REAL_DV_ALLOC_MSI,
	REAL_DV_FREE_MSI,
	REAL_DV_CREATE_EQ,
	REAL_DV_DESTROY_EQ,
	REAL_FUNCTIONS,
};

/* NULL with errno: the library is not loaded, or is older than the function. */
void *real_function(enum real_function f);

#define REAL(f, like) ((__typeof__(&(like)))real_function(f))
