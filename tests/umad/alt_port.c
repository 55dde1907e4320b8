// SPDX-License-Identifier: BSD-2-Clause
/*
 * A library to preload into Open MPI, which loads an alternate path without the port number in its
 * address, and Linux refuses that: puts in the number that stands beside it.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>

typedef int modify_fn(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

__attribute__((visibility("default"))) int ibv_modify_qp(struct ibv_qp *qp,
							 struct ibv_qp_attr *attr, int mask)
{
	modify_fn *next = (modify_fn *)dlvsym(RTLD_NEXT, "ibv_modify_qp", "IBVERBS_1.1");

	if (mask & IBV_QP_ALT_PATH && !attr->alt_ah_attr.port_num)
		attr->alt_ah_attr.port_num = attr->alt_port_num;
	return next(qp, attr, mask);
}
