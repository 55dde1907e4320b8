// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes of the DPA: the general object, and the general command with all operations on a
 * process.
 *
 * A command that waits for device code waits without the lock of the file, with a reference to the
 * process: meanwhile the object may go, which ends the wait.
 */
#include "driver/devx/dpa.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/log.h"
#include "dpa/core.h"
#include "dpa/crash.h"
#include "driver/devx/dpa_cmdq.h"
#include "driver/devx/dpa_pcc.h"
#include "driver/devx/dpa_stream.h"
#include "driver/file/cdev_file.h"
#include "driver/runtime/drive.h"
#include "driver/runtime/engine.h"
#include "driver/runtime/fault.h"
#include "driver/runtime/process.h"
#include "fabric/client/client.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd.h"
#include "prm/model.h"
#include "usermem/usermem.h"

#define CRASH_FRAMES  256u
#define ELF_BYTES_MAX (256u << 20)

/* ---- the object ---- */

static void dpa_process_free(struct devx_obj *obj)
{
	struct devx_dpa_process *d = container_of(obj, struct devx_dpa_process, obj);

	dpa_unshare(&d->shared);
	dpa_process_end(d->process);
	dpa_pcc_destroy(d->pcc);
	dpa_process_put(d->process);
}

static void *dpa_process_part(struct devx_obj *obj, uint64_t daddr, uint64_t bytes)
{
	return dpa_memory_part(container_of(obj, struct devx_dpa_process, obj)->process, daddr,
			       bytes);
}

/* A thread of the process may run this, too; the object outlives that thread. */
static void dpa_process_failed(void *user)
{
	struct devx_dpa_process *d = user;
	uint8_t eqe[EQE_BYTES] = {0};

	prm_set(eqe, EQE_TYPE, EQE_OBJECT_CHANGE);
	prm_set(eqe, EQE_OBJECT_TYPE, GENERAL_DPA_PROCESS);
	prm_set(eqe, EQE_OBJECT_ID, d->obj.number);
	devx_event(&d->obj, EQE_OBJECT_CHANGE, eqe);
}

/* A program may ask for the descriptor after a call has already told it of the error. */
static void dpa_process_subscribed(struct devx_obj *obj)
{
	struct devx_dpa_process *d = container_of(obj, struct devx_dpa_process, obj);

	if (dpa_process_state(d->process) == DPA_FATAL)
		dpa_process_failed(d);
}

const struct devx_class devx_dpa_process_class = {
	.free = dpa_process_free,
	.part = dpa_process_part,
	.subscribed = dpa_process_subscribed,
};

/* Asks the daemon, which knows what all processes have counted.  A thread of the process may run
 * this, too. */
static bool dpa_port_bytes(void *user, uint32_t port, bool received, uint64_t *bytes)
{
	const struct devx_dpa_process *d = user;
	uint64_t totals[PORT_COUNTERS];

	if (port >= d->ports || fabric_port_counters(d->port_rows[port], totals))
		return false;
	*bytes = 4 * totals[received ? PORT_RCV_DATA : PORT_XMIT_DATA];
	return true;
}

static void dpa_congestion(void *user, uint32_t flow, uint32_t rate, bool probe,
			   uint32_t next_action)
{
	const struct devx_dpa_process *d = user;

	if (d->pcc)
		dpa_pcc_ring(d->pcc, flow, rate, probe, next_action);
}

static uint64_t dpa_congestion_table(void *user, uint32_t function)
{
	const struct devx_dpa_process *d = user;

	return d->pcc && !function ? dpa_pcc_table(d->pcc) : 0;
}

/* ---- a handler's thread in the engine's place: the process is there as long as any object ---- */

static bool dpa_poll_wanted(uint32_t *polls)
{
	return drive_wants_poller(process_current(), polls);
}

static bool dpa_poll(uint32_t *polls)
{
	return drive_poll_for_it(process_current(), polls);
}

static void dpa_poll_leave(void)
{
	engine_take_over(process_current());
}

static const struct dpa_stand_in dpa_engine = {
	.wanted = dpa_poll_wanted,
	.poll = dpa_poll,
	.leave = dpa_poll_leave,
};

static int elf_read(const struct devx_call *c, void **elf, size_t *bytes)
{
	uint64_t length = prm_get(c->in, DPA_PROCESS_ELF_BYTES);
	void *copy;

	if (!length || length > ELF_BYTES_MAX)
		return -EINVAL;
	copy = malloc(length);
	if (!copy)
		return -ENOMEM;
	if (!usermem_copy(copy, (const void *)(uintptr_t)prm_get(c->in, DPA_PROCESS_ELF), length)) {
		free(copy);
		return -EINVAL;
	}
	*elf = copy;
	*bytes = length;
	return 0;
}

int devx_create_dpa_process(struct devx_call *c, struct devx_obj *obj)
{
	static _Atomic(uint32_t) number;
	struct devx_dpa_process *d = container_of(obj, struct devx_dpa_process, obj);
	struct dpa_process_attr attr = {
		.failed = dpa_process_failed,
		.port_bytes = dpa_port_bytes,
		.congestion = dpa_congestion,
		.congestion_table = dpa_congestion_table,
		.stand_in = &dpa_engine,
		.user = d,
	};
	int ret;

	if (!model_at(c->file->process->registry->model)->dpa)
		return -EOPNOTSUPP;
	d->ports = min_u32(c->file->hca->node->nports, SLOT_PORTS);
	for (uint32_t i = 0; i < d->ports; i++)
		d->port_rows[i] = ufile_port_row(c->file, i + 1);
	ret = elf_read(c, &attr.elf, &attr.elf_bytes);
	if (ret < 0)
		return ret;
	ret = fault_install_dpa();
	if (ret == 0)
		ret = dpa_process_create(&attr, &d->process);
	if (ret < 0) {
		free(attr.elf);
		return ret;
	}
	if (prm_get(c->in, DPA_PROCESS_PCC))
		ret = dpa_pcc_create(c->file->process->wire_process, c->file->hca->port, d->process,
				     &d->pcc);
	if (ret < 0) {
		dpa_process_end(d->process);
		dpa_process_put(d->process);
		return ret;
	}
	devx_obj_init(obj, &devx_dpa_process_class,
		      atomic_fetch_add(&number, 1) % (DEVX_UMEM_DPA - 1) + 1);
	d->shared = (struct dpa_shared){.number = obj->number, .process = d->process};
	dpa_share(&d->shared);
	return 0;
}

int devx_dpa_process_find(struct devx_call *c, uint32_t number, struct devx_dpa_process **out)
{
	struct uobj *uobj = devx_find(c->file, &devx_dpa_process_class, number);

	if (!uobj)
		return -ENOENT;
	*out = container_of(uobj, struct devx_dpa_process, obj.uobj);
	return 0;
}

/* ---- operations on a process ---- */

/* Returns what follows the fixed part of the input; NULL: it is not as long as the command says. */
static const void *input_tail(const struct devx_call *c, uint64_t bytes)
{
	return range_inside(DPA_IN_TAIL, bytes, c->in_len) ? c->in + DPA_IN_TAIL : NULL;
}

static int op_state(struct devx_call *c, struct dpa_process *p)
{
	prm_set(c->out, DPA_OUT_STATE, dpa_process_state(p));
	prm_set(c->out, DPA_OUT_CODE, dpa_process_code(p));
	return 0;
}

static int op_symbol(struct devx_call *c, struct dpa_process *p)
{
	uint64_t bytes = prm_get(c->in, DPA_IN_BYTES), addr;
	const char *name = input_tail(c, bytes);

	if (!bytes || !name || name[bytes - 1])
		return -EINVAL;
	addr = dpa_process_function(p, name);
	prm_set(c->out, DPA_OUT_ADDR, addr);
	return addr ? 0 : -ENOENT;
}

static int op_on_error(struct devx_call *c, struct dpa_process *p)
{
	uint64_t function = prm_get(c->in, DPA_IN_ADDR);

	return dpa_process_has_code(p, function) ? dpa_process_on_error(p, function) : -EINVAL;
}

static int op_call(struct devx_call *c, struct dpa_process *p)
{
	uint64_t value, bytes = prm_get(c->in, DPA_IN_BYTES);
	struct dpa_call call = {
		.function = prm_get(c->in, DPA_IN_ADDR),
		.unpack = prm_get(c->in, DPA_IN_UNPACK),
		.args = input_tail(c, bytes),
		.bytes = (uint32_t)bytes,
	};
	enum dpa_call_end end;

	if (!call.args || bytes > DPA_CALL_BYTES || !dpa_process_has_code(p, call.function) ||
	    (call.unpack && !dpa_process_has_code(p, call.unpack)))
		return -EINVAL;
	dpa_process_hold(p);
	pthread_mutex_unlock(&c->file->lock);
	end = dpa_call(p, &call, &value);
	pthread_mutex_lock(&c->file->lock);
	prm_set(c->out, DPA_OUT_ADDR, value);
	prm_set(c->out, DPA_OUT_END, end);
	dpa_process_put(p);
	return 0;
}

/* Waits without the lock, because many threads may wait for processors before they hear of it. */
static int op_finish(struct devx_call *c, struct dpa_process *p)
{
	dpa_process_hold(p);
	pthread_mutex_unlock(&c->file->lock);
	dpa_process_finish(p);
	pthread_mutex_lock(&c->file->lock);
	dpa_process_put(p);
	return 0;
}

static int op_heap(struct devx_call *c, struct dpa_process *p)
{
	struct dpa_heap_info info;

	dpa_memory_info(p, &info);
	prm_set(c->out, DPA_OUT_HEAP_BASE, info.base);
	prm_set(c->out, DPA_OUT_HEAP_SIZE, info.bytes);
	prm_set(c->out, DPA_OUT_REQUESTED, info.requested);
	prm_set(c->out, DPA_OUT_ALLOCATED, info.allocated);
	return 0;
}

static int op_alloc(struct devx_call *c, struct dpa_process *p)
{
	uint64_t addr = dpa_memory_alloc(p, prm_get(c->in, DPA_IN_BYTES));

	prm_set(c->out, DPA_OUT_ADDR, addr);
	return addr ? 0 : -ENOMEM;
}

static int op_free(struct devx_call *c, struct dpa_process *p)
{
	return dpa_memory_free(p, prm_get(c->in, DPA_IN_ADDR)) ? 0 : -EINVAL;
}

static int op_copy(struct devx_call *c, struct dpa_process *p)
{
	uint64_t addr = prm_get(c->in, DPA_IN_ADDR), bytes = prm_get(c->in, DPA_IN_BYTES);
	const void *source = (const void *)(uintptr_t)prm_get(c->in, DPA_IN_SOURCE);

	if (!dpa_memory_has(p, addr, bytes) ||
	    !usermem_copy((void *)(uintptr_t)addr, source, bytes))
		return -EINVAL;
	return 0;
}

static int op_fill(struct devx_call *c, struct dpa_process *p)
{
	uint64_t addr = prm_get(c->in, DPA_IN_ADDR), bytes = prm_get(c->in, DPA_IN_BYTES);

	if (!dpa_memory_has(p, addr, bytes))
		return -EINVAL;
	memset((void *)(uintptr_t)addr, (int)prm_get32(c->in, DPA_IN_VALUE), bytes);
	return 0;
}

static int op_has(struct devx_call *c, struct dpa_process *p)
{
	return dpa_memory_has(p, prm_get(c->in, DPA_IN_ADDR), prm_get(c->in, DPA_IN_BYTES))
		       ? 0
		       : -EINVAL;
}

static void frame_put(uint8_t *out, const struct dpa_frame *f)
{
	prm_set(out, DPA_FRAME_THREAD, f->thread);
	prm_set(out, DPA_FRAME_DEPTH, f->depth);
	prm_set(out, DPA_FRAME_PC, f->pc);
	prm_set(out, DPA_FRAME_SP, f->sp);
	prm_set(out, DPA_FRAME_FP, f->fp);
	prm_set(out, DPA_FRAME_IMAGE, f->image);
	prm_set(out, DPA_FRAME_OFFSET, f->offset);
	if (f->name)
		memcpy(out + DPA_FRAME_NAME, f->name, strnlen(f->name, DPA_FRAME_NAME_BYTES));
}

static int op_crash(struct devx_call *c, struct dpa_process *p)
{
	struct dpa_frame frames[CRASH_FRAMES];
	uint8_t *out = c->out + DPA_OUT_BYTES;
	struct dpa_crash crash;
	uint32_t n, room;

	if (c->out_len < DPA_OUT_BYTES + DPA_CRASH_HEADER)
		return -EINVAL;
	room = (uint32_t)((c->out_len - DPA_OUT_BYTES - DPA_CRASH_HEADER) / DPA_FRAME_BYTES);
	n = dpa_crash_read(p, &crash, frames, min_u32(room, CRASH_FRAMES));
	(void)op_state(c, p);
	prm_set(out, DPA_CRASH_FAULT, crash.fault);
	prm_set(out, DPA_CRASH_WRITE, crash.write);
	prm_set(out, DPA_CRASH_SIGNAL, crash.signum);
	prm_set(out, DPA_CRASH_ADDR, crash.addr);
	prm_set(out, DPA_CRASH_BYTES, crash.bytes);
	prm_set(out, DPA_CRASH_FRAMES, n);
	for (uint32_t i = 0; i < n; i++)
		frame_put(out + DPA_CRASH_HEADER + i * DPA_FRAME_BYTES, &frames[i]);
	return 0;
}

/* Writes to a file of the program.  It refuses the device's descriptors, which the program does not
 * know, or knows only as what they seem to be. */
static int op_core(struct devx_call *c, struct dpa_process *p)
{
	int fd = (int)prm_get32(c->in, DPA_IN_FILE);

	if (hidden_is(fd) || cdev_table_load(fd))
		return -EINVAL;
	return dpa_core_write(p, fd);
}

static int devx_dpa(struct devx_call *c)
{
	static int (*const ops[])(struct devx_call * c, struct dpa_process * p) = {
		[DPA_OP_STATE] = op_state,
		[DPA_OP_SYMBOL] = op_symbol,
		[DPA_OP_ON_ERROR] = op_on_error,
		[DPA_OP_CALL] = op_call,
		[DPA_OP_HEAP] = op_heap,
		[DPA_OP_ALLOC] = op_alloc,
		[DPA_OP_FREE] = op_free,
		[DPA_OP_COPY] = op_copy,
		[DPA_OP_FILL] = op_fill,
		[DPA_OP_HAS] = op_has,
		[DPA_OP_CRASH] = op_crash,
		[DPA_OP_CORE] = op_core,
		[DPA_OP_STREAM_READ] = devx_dpa_stream_read,
		[DPA_OP_STREAM_LEVEL] = devx_dpa_stream_level,
		[DPA_OP_STREAM_CLOSE] = devx_dpa_stream_close,
		[DPA_OP_FINISH] = op_finish,
	};
	uint32_t op = prm_get32(c->in, CMD_IN_OP_MOD);
	struct devx_dpa_process *d;
	int ret;

	if (op >= DPA_OP_CMDQ_ADD)
		return devx_dpa_cmdq_op(c, (enum dpa_op)op);
	if (op >= array_size(ops))
		return -EOPNOTSUPP;
	ret = devx_dpa_process_find(c, prm_get32(c->in, DPA_IN_PROCESS), &d);
	return ret < 0 ? ret : ops[op](c, d->process);
}

static const struct devx_op ops[] = {
	DEVX_OTHER(DPA, DPA_IN_FIXED, DPA_OUT_BYTES, devx_dpa),
};

const struct devx_family devx_dpa_family = DEVX_FAMILY(ops);
