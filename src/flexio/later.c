// SPDX-License-Identifier: BSD-2-Clause
/* The functions that are not there yet: each fails, and says so. */
#include "flexio/internal.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define LATER(type, value, name, ...)                   \
	type name(__VA_ARGS__)                          \
	{                                               \
		flx_fail(#name, "it is not there yet"); \
		return value;                           \
	}
/* One with a pointer to a result, which is NULL then. */
#define LATER_MAKES(name, out, ...)                            \
	flexio_status name(__VA_ARGS__)                        \
	{                                                      \
		if (out)                                       \
			*(out) = NULL;                         \
		return flx_fail(#name, "it is not there yet"); \
	}
#define LATER_FAILS(name, ...) LATER(flexio_status, FLEXIO_STATUS_FAILED, name, __VA_ARGS__)

/* NOLINTBEGIN(misc-unused-parameters) */
LATER_MAKES(flexio_qp_create, qp_ptr, struct flexio_process *process, struct ibv_context *ibv_ctx,
	    struct flexio_qp_attr *qp_fattr, struct flexio_qp **qp_ptr)
LATER_FAILS(flexio_qp_destroy, struct flexio_qp *qp)
LATER(uint32_t, UINT32_MAX, flexio_qp_get_qp_num, struct flexio_qp *qp)
LATER_FAILS(flexio_qp_modify, struct flexio_qp *qp, struct flexio_qp_attr *fattr,
	    struct flexio_qp_attr_opt_param_mask *mask)
LATER(enum flexio_qp_state, FLEXIO_QP_STATE_ERR, flexio_qp_state_get, struct flexio_qp *qp)
/* NOLINTEND(misc-unused-parameters) */
