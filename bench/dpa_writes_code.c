// SPDX-License-Identifier: BSD-2-Clause
/* Device code of dpa_writes: a loop of RDMA writes. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

#include "dpa_writes.h"

static void write_put(const struct write_loop *w, union flexio_dev_sqe_seg *s, uint32_t ce)
{
	flexio_dev_swqe_seg_ctrl_set(s, (uint32_t)w->pi, (uint32_t)w->qpn, ce,
				     FLEXIO_CTRL_SEG_RDMA_WRITE);
	flexio_dev_swqe_seg_rdma_set(s + 1, (uint32_t)w->rkey, w->remote);
	flexio_dev_swqe_seg_mem_ptr_data_set(s + 2, (uint32_t)w->bytes, (uint32_t)w->lkey, w->data);
}

/* Lists of requests, each awaited by the completion of its last one; how many of them failed. */
__dpa_rpc__ uint64_t write_lists(uint64_t addr, uint64_t lists, uint64_t list)
{
	struct write_loop *w = (void *)(uintptr_t)addr;
	union flexio_dev_sqe_seg *ring = (void *)(uintptr_t)w->ring;
	struct flexio_dev_cqe64 *cqes = (void *)(uintptr_t)w->cq_ring;
	struct flexio_dev_thread_ctx *ctx;
	uint64_t failed = 0;

	flexio_dev_get_thread_ctx(&ctx);
	for (; lists; lists--) {
		struct flexio_dev_cqe64 *cqe = &cqes[w->ci & (WRITE_DEPTH - 1)];

		for (uint64_t i = 0; i < list; i++) {
			write_put(w, ring + 4 * (w->pi & (WRITE_DEPTH - 1)), i + 1 < list ? 1 : 2);
			w->pi++;
		}
		__dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
		flexio_dev_qp_sq_ring_db(ctx, (uint16_t)w->pi, (uint32_t)w->qpn);
		while (flexio_dev_cqe_get_owner(cqe) != (w->ci / WRITE_DEPTH & 1) ||
		       flexio_dev_cqe_get_opcode(cqe) == 15)
			;
		__dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
		failed += flexio_dev_cqe_get_opcode(cqe) != 0;
		w->ci++;
		flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)w->cq_record, (uint32_t)w->ci);
	}
	return failed;
}
