// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: prime numbers, written into the other program's memory as they are found. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

#include "rdma.h"

#define PIECE 100u /* of one write */

/* Requests begin at blocks of four segments.  These have three: control, remote address, data. */
static void post_write(struct writer *w, uint32_t first, flexio_ctrl_seg_t kind)
{
	union flexio_dev_sqe_seg *s =
		(union flexio_dev_sqe_seg *)(uintptr_t)w->ring + 4 * (w->pi % DEPTH);
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	flexio_dev_swqe_seg_ctrl_set(s, (uint32_t)w->pi, (uint32_t)w->qpn, 2, kind);
	/* of the last one: how many there are */
	s->ctrl.general_id = cpu_to_be32(first + PIECE);
	flexio_dev_swqe_seg_rdma_set(s + 1, (uint32_t)w->rkey, w->remote + 8ull * first);
	flexio_dev_swqe_seg_mem_ptr_data_set(s + 2, 8 * PIECE, (uint32_t)w->lkey,
					     w->numbers + 8ull * first);
	w->pi++;
	/* The adapter must see the request before it hears of it. */
	__dpa_thread_memory_writeback();
	flexio_dev_qp_sq_ring_db(ctx, (uint16_t)w->pi, (uint32_t)w->qpn);
}

/* Each request has a completion; its opcode, 0: it is done. */
static uint32_t await_completion(struct writer *w)
{
	struct flexio_dev_cqe64 *cqe =
		(struct flexio_dev_cqe64 *)(uintptr_t)w->cq_ring + w->ci % DEPTH;

	while (flexio_dev_cqe_get_owner(cqe) != (w->ci / DEPTH & 1))
		;
	__dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
	flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)w->cq_record, (uint32_t)++w->ci);
	return flexio_dev_cqe_get_opcode(cqe);
}

static int is_prime(const uint64_t *smaller, uint64_t number)
{
	for (; *smaller * *smaller <= number; smaller++)
		if (number % *smaller == 0)
			return 0;
	return 1;
}

/* The host calls it; how many numbers the other program has. */
__dpa_rpc__ uint64_t write_primes(uint64_t address)
{
	struct writer *w = (struct writer *)(uintptr_t)address;
	uint64_t *numbers = (uint64_t *)(uintptr_t)w->numbers, number = 2;
	uint32_t found = 0;

	while (found < NUMBERS) {
		numbers[found++] = number++;
		while (!is_prime(numbers, number))
			number++;
		if (found % PIECE)
			continue;
		post_write(w, found - PIECE,
			   found < NUMBERS ? FLEXIO_CTRL_SEG_RDMA_WRITE
					   : FLEXIO_CTRL_SEG_RDMA_WRITE_IMM);
		if (await_completion(w))
			return found - PIECE;
	}
	return found;
}
