// SPDX-License-Identifier: BSD-2-Clause
/* Processes: each is made of an application on a device, and every other object belongs to one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flexio/internal.h"

/* ---- processes ---- */

/* Frees a process that nobody finds.  This ends what device code still does for callers. */
static void process_free(struct flexio_process *p)
{
	if (p->devx)
		(void)mlx5dv_devx_obj_destroy(p->devx);
	flx_calls_await(p);
	while (p->addresses) {
		struct flx_address *a = p->addresses;

		p->addresses = a->next;
		free(a);
	}
	if (p->errors)
		mlx5dv_devx_destroy_event_channel(p->errors);
	if (p->own_pd)
		(void)ibv_dealloc_pd(p->own_pd);
	flx_app_put(p->app);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static flexio_status process_open(struct flexio_process *p, const struct flexio_process_attr *attr,
				  const char *function)
{
	if (attr && attr->pd && attr->pd->context != p->ctx)
		return flx_fail(function, "process_attr->pd: it is of another context");
	p->pd = attr && attr->pd ? attr->pd : NULL;
	if (!p->pd)
		p->pd = p->own_pd = ibv_alloc_pd(p->ctx);
	if (!p->pd)
		return flx_fail(function, "no protection domain: %s", strerror(errno));
	p->en_pcc = attr && attr->en_pcc;
	p->devx = flx_devx_process(p->ctx, p->app->elf, p->app->elf_bytes, p->en_pcc, &p->number);
	if (!p->devx && p->en_pcc && errno == EOPNOTSUPP)
		return flx_fail(function,
				"process_attr->en_pcc: congestion is controlled on Ethernet "
				"ports only");
	if (!p->devx)
		return flx_fail(function, "the device refuses the application %s: %s", p->app->name,
				strerror(errno));
	p->uar = flx_uar_make(p, p->ctx);
	if (p->uar)
		p->outbox = flx_outbox_make(p, true, p->en_pcc);
	return p->outbox ? FLEXIO_STATUS_SUCCESS
			 : flx_fail(function, "no UAR and outbox: %s", strerror(errno));
}

flexio_status flexio_process_create(struct ibv_context *ibv_ctx, struct flexio_app *app,
				    const struct flexio_process_attr *process_attr,
				    struct flexio_process **process_ptr)
{
	FLX_HOLD(hold);
	struct flexio_process *p;

	if (!flx_given(process_ptr, __func__, "process_ptr"))
		return FLEXIO_STATUS_FAILED;
	*process_ptr = NULL;
	if (!flx_given(ibv_ctx, __func__, "ibv_ctx") ||
	    !flx_check(&hold, app, FLX_APP, __func__, "app") ||
	    flx_devx_has_dpa(ibv_ctx, __func__) != FLEXIO_STATUS_SUCCESS)
		return FLEXIO_STATUS_FAILED;
	p = calloc(1, sizeof(*p));
	if (!p)
		return flx_fail(__func__, "no memory");
	p->ctx = ibv_ctx;
	p->pid = getpid();
	p->app = app;
	flx_app_hold(app);
	pthread_mutex_init(&p->lock, NULL);
	if (process_open(p, process_attr, __func__) != FLEXIO_STATUS_SUCCESS) {
		flx_objects_drop(p);
		process_free(p);
		return FLEXIO_STATUS_FAILED;
	}
	flx_object_add(&p->object, FLX_PROCESS, NULL);
	flx_log(FLEXIO_LOG_LVL_INFO, "DPA process 0x%x of application %s, on device %s", p->number,
		app->name, ibv_get_device_name(ibv_ctx->device));
	*process_ptr = p;
	return FLEXIO_STATUS_SUCCESS;
}

/* Stops all of its threads at once, because each alone would have to wait for a processor. */
static void process_finish(const struct flexio_process *p)
{
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};

	(void)flx_devx_op(p, DPA_OP_FINISH, in, sizeof(in), out, sizeof(out));
}

flexio_status flexio_process_destroy(struct flexio_process *process)
{
	FLX_HOLD(hold);

	if (!process)
		return FLEXIO_STATUS_SUCCESS;
	if (!flx_claim(&hold, process, FLX_PROCESS, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	process_finish(process);
	flx_objects_drop(process);
	process_free(process);
	return FLEXIO_STATUS_SUCCESS;
}

/* ---- what programs ask about a process ---- */

struct ibv_pd *flexio_process_get_pd(struct flexio_process *process)
{
	FLX_HOLD(hold);

	return flx_check(&hold, process, FLX_PROCESS, __func__, "process") ? process->pd : NULL;
}

uint32_t flexio_process_get_dumem_id(struct flexio_process *process)
{
	FLX_HOLD(hold);

	return flx_check(&hold, process, FLX_PROCESS, __func__, "process")
		       ? DPA_UMEM + process->number
		       : UINT32_MAX;
}

uint64_t flexio_process_udbg_token_get(struct flexio_process *process)
{
	FLX_HOLD(hold);

	/* No debugger of the device asks for a token: gdb on the program shows its code. */
	(void)flx_check(&hold, process, FLX_PROCESS, __func__, "process");
	return 0;
}

flexio_status flexio_process_mem_info_get(const struct flexio_process *process,
					  struct flexio_heap_mem_info *info)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};
	int err;

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given(info, __func__, "info"))
		return FLEXIO_STATUS_FAILED;
	err = flx_devx_op(process, DPA_OP_HEAP, in, sizeof(in), out, sizeof(out));
	if (err)
		return flx_refused(process, __func__, err);
	*info = (struct flexio_heap_mem_info){
		.base_addr = prm_get(out, DPA_OUT_HEAP_BASE),
		.size = prm_get(out, DPA_OUT_HEAP_SIZE),
		.requested = prm_get(out, DPA_OUT_REQUESTED),
		.allocated = prm_get(out, DPA_OUT_ALLOCATED),
	};
	return FLEXIO_STATUS_SUCCESS;
}

/* ---- calls ---- */

static flexio_status call_status(struct flexio_process *p, const uint8_t *out, const char *function)
{
	switch ((enum dpa_call_end)prm_get32(out, DPA_OUT_END)) {
	case DPA_CALL_DONE:
		return FLEXIO_STATUS_SUCCESS;
	case DPA_CALL_TIMEOUT:
		flx_late_log(p, function, (uint32_t)prm_get(out, DPA_OUT_LATE));
		return FLEXIO_STATUS_TIMEOUT;
	case DPA_CALL_NO_ROOM:
		return flx_thread_refused(p, function, ENOSPC);
	case DPA_CALL_LEFT:
		return flx_fail(function, "host_func: the function ended as an event handler does, "
					  "and did not return");
	case DPA_CALL_DEAD:
		flx_crash_log(p, function);
		break;
	}
	return flx_refused(p, function, ESHUTDOWN);
}

flexio_status flexio_process_call(struct flexio_process *process, flexio_func_t *host_func,
				  uint64_t *func_ret, ...)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED + DPA_CALL_BYTES] __attribute__((aligned(8)));
	uint8_t out[DPA_OUT_BYTES] = {0};
	struct flx_address f;
	flexio_status status;
	va_list ap;
	int err;

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given((const void *)(uintptr_t)host_func, __func__, "host_func") ||
	    !flx_given(func_ret, __func__, "func_ret") ||
	    !flx_function_find(process, host_func, __func__, "host_func", &f))
		return FLEXIO_STATUS_FAILED;
	/* The command does not carry the rest of the buffer. */
	memset(in, 0, DPA_IN_FIXED + max_u64(f.function->argbuf_bytes, sizeof(uint64_t)));
	va_start(ap, func_ret);
	if (f.function->pack) {
		f.function->pack(in + DPA_IN_TAIL, ap);
	} else {
		uint64_t arg = va_arg(ap, uint64_t);

		memcpy(in + DPA_IN_TAIL, &arg, sizeof(arg));
	}
	va_end(ap);
	prm_set(in, DPA_IN_ADDR, f.addr);
	prm_set(in, DPA_IN_UNPACK, f.unpack);
	prm_set(in, DPA_IN_BYTES, f.function->argbuf_bytes);
	/* From here on another thread may destroy the process, which ends the call. */
	flx_hold_call(&hold);
	err = flx_devx_op(process, DPA_OP_CALL, in, DPA_IN_FIXED + f.function->argbuf_bytes, out,
			  sizeof(out));
	status = err ? flx_refused(process, __func__, err) : call_status(process, out, __func__);
	if (status == FLEXIO_STATUS_SUCCESS)
		*func_ret = prm_get(out, DPA_OUT_ADDR);
	return status;
}

/* ---- the heap of a process ---- */

struct memory_op {
	uint64_t addr, bytes, source; /* source: an address, or a value */
	const void *by;		      /* where the program allocates or frees */
};

static int memory_command(struct flexio_process *p, enum dpa_op op, const struct memory_op *how,
			  uint8_t out[DPA_OUT_BYTES])
{
	uint8_t in[DPA_IN_FIXED] = {0};

	prm_set(in, DPA_IN_ADDR, how->addr);
	prm_set(in, DPA_IN_BYTES, how->bytes);
	if (op == DPA_OP_FILL)
		prm_set(in, DPA_IN_VALUE, how->source);
	else if (op == DPA_OP_ALLOC || op == DPA_OP_FREE)
		prm_set(in, DPA_IN_BY, (uintptr_t)how->by);
	else
		prm_set(in, DPA_IN_SOURCE, how->source);
	return flx_devx_op(p, op, in, sizeof(in), out, DPA_OUT_BYTES);
}

static int memory_op(struct flexio_process *p, enum dpa_op op, const struct memory_op *how,
		     uint64_t *addr)
{
	uint8_t out[DPA_OUT_BYTES] = {0};
	int err = memory_command(p, op, how, out);

	if (addr)
		*addr = err ? 0 : prm_get(out, DPA_OUT_ADDR);
	return err;
}

static flexio_status memory_alloc(struct flexio_process *process, size_t bytes, uint64_t *daddr,
				  const char *function, const void *by)
{
	const struct memory_op how = {.bytes = bytes, .by = by};
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
	return memory_alloc(process, buff_bsize, dest_daddr_p, __func__,
			    __builtin_return_address(0));
}

flexio_status flexio_buf_dev_free(struct flexio_process *process, flexio_uintptr_t daddr)
{
	FLX_HOLD(hold);
	const struct memory_op how = {.addr = daddr, .by = __builtin_return_address(0)};

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	if (!daddr || !memory_op(process, DPA_OP_FREE, &how, NULL))
		return FLEXIO_STATUS_SUCCESS;
	return flx_fail(__func__, "daddr: no buffer begins at 0x%llx", (unsigned long long)daddr);
}

static flexio_status memory_outside(const char *function, size_t bytes, uint64_t daddr)
{
	return flx_fail(function,
			"dest_daddr: 0x%llx and buff_bsize: %zu bytes are not all memory of the "
			"process",
			(unsigned long long)daddr, bytes);
}

/* Logs a write that leaves the buffer in which it begins, if the device says that it is the first
 * there.  It is done nevertheless, because a card knows the heap and not its buffers. */
static void overrun_log(const char *function, const struct memory_op *how, const uint8_t *out)
{
	uint64_t buffer = prm_get(out, DPA_OUT_BLOCK), bytes = prm_get(out, DPA_OUT_LENGTH);
	char where[96] = "begin in no buffer of flexio_buf_dev_alloc";

	if (!prm_get(out, DPA_OUT_OVERRUN))
		return;
	if (bytes)
		(void)snprintf(where, sizeof(where), "leave the buffer of %llu bytes at 0x%llx",
			       (unsigned long long)bytes, (unsigned long long)buffer);
	flx_log(FLEXIO_LOG_LVL_ERR,
		"%s: dest_daddr: %llu bytes at 0x%llx %s: they are written over memory of others",
		function, (unsigned long long)how->bytes, (unsigned long long)how->addr, where);
}

/* Copies or fills; returns an errno: ENOENT if the process has no such memory. */
static int memory_write(struct flexio_process *p, enum dpa_op op, const struct memory_op *how,
			const char *function)
{
	uint8_t out[DPA_OUT_BYTES] = {0};
	int err = memory_command(p, op, how, out);

	if (!err)
		overrun_log(function, how, out);
	return err;
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

void flx_piece_check(struct flexio_process *process, const char *function, const char *argument,
		     const struct flx_piece *piece)
{
	const struct memory_op all = {.addr = piece->daddr, .bytes = piece->bytes};
	const struct memory_op first = {.addr = piece->daddr, .bytes = 1};

	if (memory_op(process, DPA_OP_HAS, &all, NULL) != EINVAL)
		return;
	flx_log(FLEXIO_LOG_LVL_ERR,
		"%s: %s: the %s of %s 0x%x, %llu bytes at 0x%llx, %s of flexio_buf_dev_alloc: the "
		"%s uses memory of others",
		function, argument, piece->what, piece->user, piece->number,
		(unsigned long long)piece->bytes, (unsigned long long)piece->daddr,
		memory_op(process, DPA_OP_HAS, &first, NULL) ? "begins in no buffer"
							     : "is longer than its buffer",
		piece->user);
}

void flx_ring_check(struct flexio_process *process, const char *function, const char *argument,
		    const struct flexio_qmem *ring, uint32_t number, uint64_t bytes)
{
	const struct flx_piece piece = {"ring", "queue", number, ring->daddr, bytes};
	char field[64];

	if (ring->memtype == FLEXIO_MEMTYPE_HOST || !bytes)
		return;
	(void)snprintf(field, sizeof(field), "%s.daddr", argument);
	flx_piece_check(process, function, field, &piece);
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
	const struct memory_op how = {.addr = daddr, .bytes = bytes, .source = (uintptr_t)from};
	int err = memory_write(process, DPA_OP_COPY, &how, function);

	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	if (err == ENOENT)
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
	status = memory_alloc(process, buff_bsize, dest_daddr_p, __func__,
			      __builtin_return_address(0));
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
	const struct memory_op how = {
		.addr = dest_daddr, .bytes = buff_bsize, .source = (uint8_t)value};

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	if (!memory_write(process, DPA_OP_FILL, &how, __func__))
		return FLEXIO_STATUS_SUCCESS;
	return memory_outside(__func__, buff_bsize, dest_daddr);
}
