// SPDX-License-Identifier: BSD-2-Clause
/* The heap of a process. */
#include <errno.h>

#include "flexio/internal.h"

struct memory_op {
	uint64_t addr, bytes, source; /* source: an address, or a value */
};

static int memory_op(struct flexio_process *p, enum dpa_op op, const struct memory_op *how,
		     uint64_t *addr)
{
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};
	int err;

	prm_set(in, DPA_IN_ADDR, how->addr);
	prm_set(in, DPA_IN_BYTES, how->bytes);
	if (op == DPA_OP_FILL)
		prm_set(in, DPA_IN_VALUE, how->source);
	else
		prm_set(in, DPA_IN_SOURCE, how->source);
	err = flx_devx_op(p, op, in, sizeof(in), out, sizeof(out));
	if (addr)
		*addr = err ? 0 : prm_get(out, DPA_OUT_ADDR);
	return err;
}

static flexio_status memory_alloc(struct flexio_process *process, size_t bytes, uint64_t *daddr,
				  const char *function)
{
	const struct memory_op how = {.bytes = bytes};
	int err = bytes ? memory_op(process, DPA_OP_ALLOC, &how, daddr) : 0;

	if (!bytes)
		return flx_fail(function, "buff_bsize is 0");
	if (err == ENOMEM || err == ENOSPC)
		return flx_fail(function, "buff_bsize: no %zu bytes are left", bytes);
	return err ? flx_refused(process, function, err) : FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_buf_dev_alloc(struct flexio_process *process, size_t buff_bsize,
				   flexio_uintptr_t *dest_daddr_p)
{
	FLX_HOLD(hold);

	if (!flx_given(dest_daddr_p, __func__, "dest_daddr_p"))
		return FLEXIO_STATUS_FAILED;
	*dest_daddr_p = 0;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	return memory_alloc(process, buff_bsize, dest_daddr_p, __func__);
}

flexio_status flexio_buf_dev_free(struct flexio_process *process, flexio_uintptr_t daddr)
{
	FLX_HOLD(hold);
	const struct memory_op how = {.addr = daddr};

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	if (!daddr || !memory_op(process, DPA_OP_FREE, &how, NULL))
		return FLEXIO_STATUS_SUCCESS;
	return flx_fail(__func__, "daddr: no buffer begins at 0x%llx", (unsigned long long)daddr);
}

static flexio_status memory_outside(const char *function, size_t bytes, uint64_t daddr)
{
	return flx_fail(function,
			"dest_daddr: 0x%llx and buff_bsize: %zu bytes are not inside of one buffer",
			(unsigned long long)daddr, bytes);
}

struct flx_qmem_text flx_qmem_text(const struct flexio_qmem *qmem)
{
	struct flx_qmem_text text;

	if (qmem->memtype == FLEXIO_MEMTYPE_HOST)
		(void)snprintf(text.bytes, sizeof(text.bytes), "umem 0x%x, offset 0x%llx",
			       qmem->umem_id, (unsigned long long)qmem->humem_offset);
	else
		(void)snprintf(text.bytes, sizeof(text.bytes), "daddr 0x%llx",
			       (unsigned long long)qmem->daddr);
	return text;
}

void flx_ring_check(struct flexio_process *process, const char *function, const char *argument,
		    const struct flexio_qmem *ring, uint32_t number, uint64_t bytes)
{
	const struct memory_op all = {.addr = ring->daddr, .bytes = bytes};
	const struct memory_op first = {.addr = ring->daddr, .bytes = 1};

	if (ring->memtype == FLEXIO_MEMTYPE_HOST || !bytes ||
	    memory_op(process, DPA_OP_HAS, &all, NULL) != EINVAL)
		return;
	flx_log(FLEXIO_LOG_LVL_ERR,
		"%s: %s.daddr: the ring of queue 0x%x, %llu bytes at 0x%llx, %s of "
		"flexio_buf_dev_alloc: the queue uses memory of others",
		function, argument, number, (unsigned long long)bytes,
		(unsigned long long)ring->daddr,
		memory_op(process, DPA_OP_HAS, &first, NULL) ? "begins in no buffer"
							     : "is longer than its buffer");
}

void flx_place_check(const char *function, const char *argument, const struct flexio_qmem *qmem,
		     uint32_t number, uint32_t unit)
{
	uint64_t at = qmem->memtype == FLEXIO_MEMTYPE_HOST ? qmem->humem_offset : qmem->daddr;

	if (at % unit)
		flx_log(FLEXIO_LOG_LVL_ERR,
			"%s: %s of queue 0x%x: %s is no multiple of %u: a card may use other "
			"memory",
			function, argument, number, flx_qmem_text(qmem).bytes, unit);
}

static flexio_status memory_copy(struct flexio_process *process, const void *from, size_t bytes,
				 uint64_t daddr, const char *function)
{
	const struct memory_op how = {daddr, bytes, (uintptr_t)from};

	if (!memory_op(process, DPA_OP_COPY, &how, NULL))
		return FLEXIO_STATUS_SUCCESS;
	if (memory_op(process, DPA_OP_HAS, &how, NULL))
		return memory_outside(function, bytes, daddr);
	return flx_fail(function, "src_haddr: %p and buff_bsize: %zu bytes are not all there", from,
			bytes);
}

flexio_status flexio_host2dev_memcpy(struct flexio_process *process, void *src_haddr,
				     size_t buff_bsize, flexio_uintptr_t dest_daddr)
{
	FLX_HOLD(hold);

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given(src_haddr, __func__, "src_haddr"))
		return FLEXIO_STATUS_FAILED;
	return memory_copy(process, src_haddr, buff_bsize, dest_daddr, __func__);
}

flexio_status flexio_copy_from_host(struct flexio_process *process, void *src_haddr,
				    size_t buff_bsize, flexio_uintptr_t *dest_daddr_p)
{
	FLX_HOLD(hold);
	flexio_status status;

	if (!flx_given(dest_daddr_p, __func__, "dest_daddr_p"))
		return FLEXIO_STATUS_FAILED;
	*dest_daddr_p = 0;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given(src_haddr, __func__, "src_haddr"))
		return FLEXIO_STATUS_FAILED;
	status = memory_alloc(process, buff_bsize, dest_daddr_p, __func__);
	if (status == FLEXIO_STATUS_SUCCESS) {
		status = memory_copy(process, src_haddr, buff_bsize, *dest_daddr_p, __func__);
		if (status != FLEXIO_STATUS_SUCCESS) {
			(void)flexio_buf_dev_free(process, *dest_daddr_p);
			*dest_daddr_p = 0;
		}
	}
	return status;
}

flexio_status flexio_buf_dev_memset(struct flexio_process *process, int value, size_t buff_bsize,
				    flexio_uintptr_t dest_daddr)
{
	FLX_HOLD(hold);
	const struct memory_op how = {dest_daddr, buff_bsize, (uint8_t)value};

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	if (!memory_op(process, DPA_OP_FILL, &how, NULL))
		return FLEXIO_STATUS_SUCCESS;
	return memory_outside(__func__, buff_bsize, dest_daddr);
}
