// SPDX-License-Identifier: BSD-2-Clause
/* Processes of the DPA as objects of DEVX, with aliases of them, and their streams and windows. */
#include "driver/devx/dpa.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/memory/mkey.h"
#include "base/hazard.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "dpa/crash.h"
#include "dpa/dpa.h"
#include "dpa/stream.h"
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

/* ---- streams ---- */

/*
 * Streams of a process of the DPA: the general object, and the operations on a stream.
 *
 * A read that waits does so without the lock of the file, with a reference to the stream and to its
 * process.  The end of the object, of its process or of the file closes the stream, which ends the
 * wait.
 */

_Static_assert(DPA_STREAM_READ_BYTES >= DPA_STREAM_READ_MIN,
	       "a read has room for the longest message");

static void dpa_stream_free(struct devx_obj *obj)
{
	struct devx_dpa_stream *s = container_of(obj, struct devx_dpa_stream, obj);

	dpa_stream_close(s->stream);
	dpa_stream_put(s->stream);
	dpa_process_put(s->process);
}

static const struct devx_class devx_dpa_stream_class = {.free = dpa_stream_free};

static int devx_dpa_process_find(struct devx_call *c, uint32_t number,
				 struct devx_dpa_process **out) must_check;

int devx_create_dpa_stream(struct devx_call *c, struct devx_obj *obj)
{
	/* A counter, so that no stream gets the number of one that is closed and still read. */
	static _Atomic(uint32_t) serial;
	struct devx_dpa_stream *s = container_of(obj, struct devx_dpa_stream, obj);
	const struct dpa_stream_attr attr = {
		.mode = prm_get32(c->in, DPA_STREAM_MODE),
		.level = prm_get32(c->in, DPA_STREAM_LEVEL),
		.bytes = prm_get(c->in, DPA_STREAM_BUFFER),
		.only_default = prm_get32(c->in, DPA_STREAM_ONLY_DEFAULT),
	};
	struct devx_dpa_process *d;
	int ret = devx_dpa_process_find(c, prm_get32(c->in, DPA_STREAM_PROCESS), &d);

	if (ret < 0)
		return ret;
	if (dpa_process_state(d->process) == DPA_ENDED)
		return -ENOENT;
	ret = dpa_stream_create(dpa_process_streams(d->process), &attr, &s->stream);
	if (ret < 0)
		return ret;
	s->process = d->process;
	dpa_process_hold(s->process);
	devx_obj_init(obj, &devx_dpa_stream_class,
		      atomic_fetch_add(&serial, 1) << 8 | dpa_stream_number(s->stream));
	devx_obj_uses(obj, &d->obj.uobj);
	return 0;
}

/* Finds the stream that a command names, which has to be one of the process. */
static int dpa_stream_of(struct devx_call *c, const struct dpa_process *p, struct dpa_stream **out)
{
	struct uobj *uobj =
		devx_find(c->file, &devx_dpa_stream_class, prm_get32(c->in, DPA_IN_STREAM));
	struct devx_dpa_stream *s;

	if (!uobj)
		return -ENOENT;
	s = container_of(uobj, struct devx_dpa_stream, obj.uobj);
	if (s->process != p)
		return -EINVAL;
	*out = s->stream;
	return 0;
}

/* Operations of the general command, on a stream of the process. */
static int devx_dpa_stream_read(struct devx_call *c, struct dpa_process *p)
{
	bool wait = prm_get32(c->in, DPA_IN_WAIT);
	struct dpa_stream *stream;
	uint64_t before = 0;
	int64_t bytes;
	int ret;

	if (c->out_len < DPA_OUT_BYTES + DPA_STREAM_READ_BYTES)
		return -EINVAL;
	ret = dpa_stream_of(c, p, &stream);
	if (ret < 0)
		return ret;
	dpa_process_hold(p);
	dpa_stream_hold(stream);
	pthread_mutex_unlock(&c->file->lock);
	bytes = dpa_stream_read(stream, c->out + DPA_OUT_BYTES, c->out_len - DPA_OUT_BYTES, wait,
				&before);
	prm_set(c->out, DPA_OUT_LOST, dpa_stream_lost(stream));
	dpa_stream_put(stream);
	dpa_process_put(p);
	pthread_mutex_lock(&c->file->lock);
	prm_set(c->out, DPA_OUT_TEXT, bytes < 0 ? 0 : (uint64_t)bytes);
	prm_set(c->out, DPA_OUT_OVER, bytes < 0);
	prm_set(c->out, DPA_OUT_BEFORE, before);
	return 0;
}

static int devx_dpa_stream_level(struct devx_call *c, struct dpa_process *p)
{
	struct dpa_stream *stream;
	int ret = dpa_stream_of(c, p, &stream);

	return ret < 0 ? ret : dpa_stream_level(stream, prm_get32(c->in, DPA_IN_LEVEL));
}

static int devx_dpa_stream_close(struct devx_call *c, struct dpa_process *p)
{
	struct dpa_stream *stream;
	int ret = dpa_stream_of(c, p, &stream);

	if (ret == 0)
		dpa_stream_close(stream);
	return ret;
}

/* ---- processes ---- */

/*
 * Processes of the DPA: the general object, and the general command with all operations on a
 * process.
 *
 * A command that waits for device code waits without the lock of the file, with a reference to the
 * process: meanwhile the object may go, which ends the wait.
 */

#define CRASH_FRAMES  256u
#define FILL_BYTES    4096u
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

/* The process with that number; -ENOENT. */
static must_check int devx_dpa_process_find(struct devx_call *c, uint32_t number,
					    struct devx_dpa_process **out)
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
	uint64_t addr =
		dpa_memory_alloc(p, prm_get(c->in, DPA_IN_BYTES), prm_get(c->in, DPA_IN_BY));

	prm_set(c->out, DPA_OUT_ADDR, addr);
	return addr ? 0 : -ENOMEM;
}

static int op_free(struct devx_call *c, struct dpa_process *p)
{
	return dpa_memory_free(p, prm_get(c->in, DPA_IN_ADDR), prm_get(c->in, DPA_IN_BY)) ? 0
											  : -EINVAL;
}

/* -ENOENT: the host does not write there.  Says in the output if it leaves a block of the heap. */
static must_check int op_destination(struct devx_call *c, struct dpa_process *p)
{
	struct dpa_overrun overrun;

	if (!dpa_memory_writable(p, prm_get(c->in, DPA_IN_ADDR), prm_get(c->in, DPA_IN_BYTES),
				 &overrun))
		return -ENOENT;
	prm_set(c->out, DPA_OUT_BLOCK, overrun.block);
	prm_set(c->out, DPA_OUT_LENGTH, overrun.bytes);
	prm_set(c->out, DPA_OUT_OVERRUN, overrun.found);
	return 0;
}

static int op_copy(struct devx_call *c, struct dpa_process *p)
{
	uint64_t addr = prm_get(c->in, DPA_IN_ADDR), bytes = prm_get(c->in, DPA_IN_BYTES);
	const void *source = (const void *)(uintptr_t)prm_get(c->in, DPA_IN_SOURCE);
	int ret = op_destination(c, p);

	if (ret == 0 && !usermem_copy((void *)(uintptr_t)addr, source, bytes))
		ret = -EINVAL;
	return ret;
}

/* Variables of the image may have become read-only. */
static int op_fill(struct devx_call *c, struct dpa_process *p)
{
	uint64_t addr = prm_get(c->in, DPA_IN_ADDR), left = prm_get(c->in, DPA_IN_BYTES);
	uint8_t value[FILL_BYTES];
	int ret = op_destination(c, p);

	memset(value, (int)prm_get32(c->in, DPA_IN_VALUE), sizeof(value));
	while (ret == 0 && left) {
		uint64_t n = min_u64(left, sizeof(value));

		if (!usermem_copy((void *)(uintptr_t)addr, value, n))
			ret = -ENOENT;
		addr += n;
		left -= n;
	}
	return ret;
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
	prm_set(out, DPA_FRAME_LATE, f->late);
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
	prm_set(out, DPA_CRASH_STACK, crash.stack);
	prm_set(out, DPA_CRASH_FREED, crash.block.freed);
	prm_set(out, DPA_CRASH_BLOCK, crash.block.addr);
	prm_set(out, DPA_CRASH_BLOCK_BYTES, crash.block.bytes);
	prm_set(out, DPA_CRASH_ALLOCATED_BY, crash.block.by);
	prm_set(out, DPA_CRASH_FREED_BY, crash.block.freed_by);
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

/* ---- aliases ---- */

/*
 * A command looks up numbers of other objects in its own file.  A program may have a process of the
 * DPA in one file and queues, keys and windows in another: there an alias stands for the process,
 * or for one of its threads, under the same number.
 *
 * An alias may outlive the object that it stands for.  Its memory stays as long as an alias holds
 * it; a thread that has gone hears nothing.
 */

static struct devx_dpa_alias *alias_of(struct devx_obj *obj)
{
	return container_of(obj, struct devx_dpa_alias, obj);
}

static void dpa_alias_process_free(struct devx_obj *obj)
{
	dpa_process_put(alias_of(obj)->process);
}

static void *dpa_alias_process_part(struct devx_obj *obj, uint64_t daddr, uint64_t bytes)
{
	return dpa_memory_part(alias_of(obj)->process, daddr, bytes);
}

static const struct devx_class dpa_alias_process_class = {
	.free = dpa_alias_process_free,
	.part = dpa_alias_process_part,
};

/*
 * The process with that number, of this file or of another; *uobj becomes the object that stands
 * for it in this file.  NULL: there is none.
 */
static struct dpa_process *devx_dpa_alias_find(struct devx_call *c, uint32_t number,
					       struct uobj **uobj)
{
	struct devx_dpa_process *own;

	if (devx_dpa_process_find(c, number, &own) == 0) {
		*uobj = &own->obj.uobj;
		return own->process;
	}
	*uobj = devx_find(c->file, &dpa_alias_process_class, number);
	return *uobj ? container_of(*uobj, struct devx_dpa_alias, obj.uobj)->process : NULL;
}

static void dpa_alias_thread_activate(struct devx_obj *obj)
{
	dpa_shared_handler_activate(obj->number);
}

static const struct devx_class dpa_alias_thread_class = {.activate = dpa_alias_thread_activate};

int devx_create_dpa_alias(struct devx_call *c, struct devx_obj *obj)
{
	uint32_t number = prm_get32(c->in, DPA_ALIAS_NUMBER);

	if (!model_at(c->file->process->registry->model)->dpa)
		return -EOPNOTSUPP;
	if (prm_get(c->in, DPA_ALIAS_THREAD)) {
		if (!dpa_shared_handler_exists(number))
			return -ENOENT;
		devx_obj_init(obj, &dpa_alias_thread_class, number);
		return 0;
	}
	alias_of(obj)->process = dpa_shared_process(number);
	if (!alias_of(obj)->process)
		return -ENOENT;
	devx_obj_init(obj, &dpa_alias_process_class, number);
	return 0;
}

/* ---- windows ---- */

/* Windows of the DPA: a window has the protection domain of the keys by which device code reaches
 * memory of the host. */

#define COPY_BYTES_MAX (1ull << 32)

static uint32_t window_access(bool write)
{
	return write ? IB_ACCESS_LOCAL_WRITE : 0;
}

static struct mkey_use window_use(uint32_t key, uint32_t pdn, bool write)
{
	return (struct mkey_use){
		.key = key, .pdn = pdn, .qpn = MKEY_ANY_QPN, .access = window_access(write)};
}

/* The memory of a region lies in one piece. */
static bool window_find(void *device, uint32_t key, uint32_t pdn, bool *linear, uint64_t *base)
{
	const struct mkey_use u = window_use(key, pdn, false);
	struct adapter *a = device;
	const struct mkey_meaning *m;
	struct runs none;
	bool found;

	runs_begin(&none);
	hazard_enter();
	m = number_find(&a->mkeys, key >> 8);
	*linear = m && m->region_key == key;
	if (*linear)
		*base = (uintptr_t)m->addr - m->iova;
	found = *linear ? m->pdn == pdn : mkey_resolve(a, &u, 0, 0, &none) == MKEY_OK;
	hazard_leave();
	return found;
}

static bool window_allows(void *device, uint32_t key, uint32_t pdn, uint64_t haddr, uint64_t bytes,
			  bool write)
{
	bool allows;

	hazard_enter();
	allows = mkey_region_at(device, key, pdn, window_access(write), haddr, bytes) != NULL;
	hazard_leave();
	return allows;
}

static bool run_copy(const struct run *run, uint8_t *mine, bool write)
{
	if (run->addr == RUN_DISCARD)
		return true;
	return write ? usermem_copy(run->addr, mine, run->len)
		     : usermem_copy(mine, run->addr, run->len);
}

/* Copies, or only checks whether the key allows the copy. */
static bool window_walk(struct adapter *a, const struct mkey_use *u, uint64_t haddr, uint8_t *mine,
			uint64_t bytes, bool copy)
{
	bool write = u->access;
	struct runs runs;

	do {
		enum mkey_verdict v;

		runs_begin(&runs);
		v = mkey_resolve(a, u, haddr, bytes, &runs);
		if (v != MKEY_OK && (v != MKEY_TOO_MANY_RUNS || !runs.n))
			return false;
		for (uint32_t i = 0; i < runs.n; i++) {
			if (copy && !run_copy(&runs.run[i], mine, write))
				return false;
			mine += runs.run[i].len;
			haddr += runs.run[i].len;
			bytes -= runs.run[i].len;
		}
	} while (bytes);
	return true;
}

/* Copies all of it or nothing, as far as the key decides. */
static bool window_copy(void *device, uint32_t key, uint32_t pdn, uint64_t haddr, void *mine,
			uint64_t bytes, bool write)
{
	const struct mkey_use u = window_use(key, pdn, write);
	bool done;

	if (bytes > COPY_BYTES_MAX)
		return false;
	hazard_enter();
	done = window_walk(device, &u, haddr, mine, bytes, false) &&
	       window_walk(device, &u, haddr, mine, bytes, true);
	hazard_leave();
	return done;
}

static const struct dpa_keys window_keys = {
	.find = window_find,
	.allows = window_allows,
	.copy = window_copy,
};

static void dpa_window_free(struct devx_obj *obj)
{
	dpa_window_remove(container_of(obj, struct devx_dpa_window, obj)->process, obj->number);
}

/* The number is one of the process, so the process gives it back. */
static const struct devx_class devx_dpa_window_class = {.free = dpa_window_free};

int devx_create_dpa_window(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_dpa_window *w = container_of(obj, struct devx_dpa_window, obj);
	uint32_t pdn = prm_get32(c->in, DPA_WINDOW_PD);
	struct uobj *process, *pd = NULL;
	int ret;

	w->process = devx_dpa_alias_find(c, prm_get32(c->in, DPA_WINDOW_PROCESS), &process);
	ret = w->process ? devx_pd(c->file, pdn, &pd) : -ENOENT;
	if (ret < 0)
		return ret;
	ret = dpa_window_add(w->process, &window_keys, c->file->hca->adapter, pdn);
	if (ret < 0)
		return ret;
	devx_obj_init(obj, &devx_dpa_window_class, (uint32_t)ret);
	devx_obj_uses(obj, process);
	devx_obj_uses(obj, pd);
	return 0;
}
