// SPDX-License-Identifier: BSD-2-Clause
/* The table behind the door: what device code gets when it asks. */
#include <sched.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "dpa/debugger.h"
#include "dpa/process.h"
#include "usermem/usermem.h"

/* ---- messages and records ---- */

/*
 * Messages and records of device threads, on their way to the streams.
 *
 * This copies texts and arguments before it looks at a stream: they lie in the program's memory,
 * which may go, and code that holds a stream's lock must not fault.
 */

/* Device code prints; called in the door. */
static void dpa_message(struct dpa_thread *t, uint32_t stream, uint32_t level, const char *text,
			uint32_t bytes)
{
	char copy[DPA_MESSAGE_BYTES];

	if (bytes <= sizeof(copy) && usermem_copy(copy, text, bytes))
		dpa_streams_message(&t->process->streams, stream, level, copy, bytes, &t->stop);
}

static void dpa_trace(struct dpa_thread *t, uint32_t stream, uint32_t level, uint32_t format_id,
		      const uint64_t args[DPA_TRACE_ARGS])
{
	struct dpa_trace_record record = {.format_id = format_id};

	if (usermem_copy(record.args, args, sizeof(record.args)))
		dpa_streams_trace(&t->process->streams, stream, level, &record, &t->stop);
}

static void dpa_trace_send(struct dpa_thread *t, uint32_t stream, uint32_t records)
{
	dpa_streams_trace_send(&t->process->streams, stream, records);
}

struct dpa_streams *dpa_process_streams(struct dpa_process *p)
{
	return &p->streams;
}

/*
 * ---- the table ----
 *
 * Each function enters the runtime first and leaves it last, unless it only gives what the thread has
 * anyway; it checks an address before it uses it.
 */

/* A function that asks for the frame's address has a frame: from there the runtime finds its way
 * from a thread that it stops here to device code. */
static inline __attribute__((always_inline)) struct dpa_thread *door_enter(void)
{
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	return dpa_door_enter();
}

static struct flexio_dev_thread_ctx *door_thread_ctx(void)
{
	struct dpa_thread *t = dpa_thread_self();

	return &dpa_slot_top(t->process, t->slot)->ctx;
}

static void door_end(uint32_t how)
{
	static const enum dpa_outcome outcomes[] = {
		[DPA_END_RESCHEDULE] = DPA_OUT_RESCHEDULED,
		[DPA_END_RETRIGGER] = DPA_OUT_RETRIGGERED,
		[DPA_END_FINISH] = DPA_OUT_FINISHED,
		[DPA_END_PROCESS_FINISH] = DPA_OUT_PROCESS_FINISHED,
	};
	struct dpa_thread *t = door_enter();

	dpa_thread_leave(t, how < array_size(outcomes) ? outcomes[how] : DPA_OUT_RESCHEDULED, 0);
}

static void door_yield(uint32_t retrigger)
{
	struct dpa_thread *t = door_enter();

	if (t->yield && t->weak)
		dpa_weak_end(t->weak, false);
	if (t->yield)
		t->yield(t, retrigger);
	dpa_door_leave(t);
}

/* A function of the door stores the caller's frame pointer at the start of its own frame. */
static struct dpa_registers registers_of_caller(void *place, void *frame)
{
	return (struct dpa_registers){
		.known = true,
		.returns = true,
		.pc = (uintptr_t)place,
		.sp = (uintptr_t)frame + 2 * sizeof(uint64_t),
		.fp = *(uint64_t *)frame,
	};
}

static void door_error(uint32_t code)
{
	struct dpa_thread *t = door_enter();

	t->registers = registers_of_caller(__builtin_return_address(0), __builtin_frame_address(0));
	dpa_debugger_stop();
	dpa_thread_leave(t, DPA_OUT_ERROR, code);
}

static void door_relax(void)
{
	struct dpa_thread *t = door_enter();

	sched_yield();
	dpa_door_leave(t);
}

static uint64_t door_time(void)
{
	struct dpa_thread *t = door_enter();
	uint64_t now = clock_ns();

	dpa_door_leave(t);
	return now;
}

static uint64_t door_worked(void)
{
	struct dpa_thread *t = door_enter();
	uint64_t ns = clock_thread_ns();

	dpa_door_leave(t);
	return ns;
}

/* ---- addresses ---- */

/* Reports the caller's place: the functions between it and the door have frames. */
static _Noreturn void place_refused(struct dpa_thread *t, struct dpa_fault fault, void *place,
				    void *frame)
{
	t->registers = registers_of_caller(place, frame);
	t->fault = fault;
	dpa_debugger_stop();
	dpa_thread_leave(t, DPA_OUT_FAULT, 0);
}

static _Noreturn void access_refused(struct dpa_thread *t, uint64_t addr, uint64_t bytes,
				     bool write, void *place, void *frame)
{
	struct dpa_fault fault = {.addr = addr, .bytes = bytes, .write = write};

	dpa_memory_meant(t->process, addr, bytes, &fault.block);
	place_refused(t, fault, place, frame);
}

/* What the thread has done until now is ordered before what others do who have heard of that. */
static void thread_tells(struct dpa_thread *t, uint32_t object)
{
	struct dpa_race *race = t->process->race;

	if (race)
		dpa_race_publish(race, t->slot, object, __ATOMIC_RELEASE);
}

/* Enters the runtime for a bell. */
static inline __attribute__((always_inline)) struct dpa_thread *bell_enter(void)
{
	struct dpa_thread *t = door_enter();

	thread_tells(t, DPA_RACE_BELLS);
	return t;
}

static void door_check(uint64_t addr, uint64_t bytes, uint32_t write)
{
	/* As in code without checks that jumps to where nothing is. */
	const struct dpa_fault call = {.signum = SIGSEGV, .addr = addr};
	const struct dpa_window_access access = {addr, bytes, write};
	struct dpa_thread *t = door_enter();
	struct dpa_trail trail = {0};

	if (write == DPA_CHECK_CALL)
		place_refused(t, call, __builtin_return_address(0), __builtin_frame_address(0));
	if (t->weak || t->process->race)
		trail = dpa_trail_from(t, __builtin_frame_address(0));
	if (!dpa_memory_allows(t->process, addr, bytes) && !dpa_window_access(t, &access, &trail))
		access_refused(t, addr, bytes, write, __builtin_return_address(0),
			       __builtin_frame_address(0));
	if (t->process->race)
		dpa_race_access(t->process->race, t->slot,
				&(struct dpa_race_access){addr, bytes, write, false}, &trail);
	dpa_door_leave(t);
}

static void watch_order(struct dpa_thread *t, uint64_t addr, uint32_t what, int order)
{
	struct dpa_race *race = t->process->race;

	if (what == DPA_WATCH_STORE || what == DPA_WATCH_UPDATE)
		dpa_race_publish(race, t->slot, addr, order);
	else if (what == DPA_WATCH_TAKE)
		dpa_race_take(race, t->slot, addr, order);
	else if (what == DPA_WATCH_FENCE)
		dpa_race_fence(race, t->slot, order);
}

static void door_watch(uint64_t addr, uint64_t bytes, uint32_t what, uint32_t order)
{
	const bool write = what == DPA_WATCH_STORE || what == DPA_WATCH_UPDATE;
	const struct dpa_window_access access = {addr, bytes, write};
	struct dpa_thread *t = door_enter();
	struct dpa_trail trail = dpa_trail_from(t, __builtin_frame_address(0));

	if (bytes && what != DPA_WATCH_TAKE) {
		if (!dpa_memory_allows(t->process, addr, bytes) &&
		    !dpa_window_access(t, &access, &trail))
			access_refused(t, addr, bytes, write, __builtin_return_address(0),
				       __builtin_frame_address(0));
		if (t->process->race)
			dpa_race_access(t->process->race, t->slot,
					&(struct dpa_race_access){addr, bytes, write, true},
					&trail);
	}
	if (t->process->race)
		watch_order(t, addr, what, (int)order);
	dpa_door_leave(t);
}

static void door_fence(uint32_t space, uint32_t before, uint32_t behind)
{
	struct dpa_thread *t = door_enter();

	if (t->weak && space >= DPA_SPACE_MMIO)
		dpa_weak_fence(t->weak, before, behind);
	if (space >= DPA_SPACE_MMIO && before & DPA_FENCE_W)
		thread_tells(t, DPA_RACE_HOST);
	if (t->process->race && space >= DPA_SPACE_MMIO && behind & DPA_FENCE_R)
		dpa_race_begin(t->process->race, t->slot);
	dpa_door_leave(t);
}

/* ---- windows ---- */

static uint32_t door_status(struct dpa_thread *t, bool done)
{
	dpa_door_leave(t);
	return done ? DPA_SUCCESS : DPA_FAILED;
}

static uint32_t door_window_config(uint32_t slot, uint32_t window_id, uint32_t mkey)
{
	struct dpa_thread *t = door_enter();
	bool done = dpa_window_config(t, slot, window_id, mkey);

	if (done)
		dpa_slot_top(t->process, t->slot)->ctx.window_config_id = (uint16_t)window_id;
	return door_status(t, done);
}

static uint32_t door_window_mkey(uint32_t slot, uint32_t mkey)
{
	struct dpa_thread *t = door_enter();

	return door_status(t, dpa_window_key(t, slot, mkey));
}

static uint32_t door_window_acquire(uint32_t slot, uint64_t haddr, uint64_t *daddr)
{
	struct dpa_thread *t = door_enter();
	uint64_t at;
	bool done = dpa_memory_allows(t->process, (uintptr_t)daddr, sizeof(at));

	/* That redzones forbid memory of the heap is no failure of the window's. */
	if (!done && dpa_memory_part(t->process, (uintptr_t)daddr, sizeof(at)))
		access_refused(t, (uintptr_t)daddr, sizeof(at), true, __builtin_return_address(0),
			       __builtin_frame_address(0));
	done = dpa_window_acquire(t, slot, haddr, &at) && done &&
	       usermem_copy(daddr, &at, sizeof(at));

	return door_status(t, done);
}

static uint32_t door_window_copy(uint32_t slot, uint32_t to_host, uint64_t haddr, uint64_t daddr,
				 uint64_t bytes)
{
	struct dpa_thread *t = door_enter();
	bool done = dpa_memory_allows(t->process, daddr, bytes);

	/* As above. */
	if (!done && dpa_memory_part(t->process, daddr, bytes))
		access_refused(t, daddr, bytes, !to_host, __builtin_return_address(0),
			       __builtin_frame_address(0));
	done = done && dpa_window_copy(t, slot, to_host, haddr, (void *)(uintptr_t)daddr, bytes);

	return door_status(t, done);
}

/* ---- bells ---- */

static uint32_t door_outbox_config(uint32_t id)
{
	struct dpa_thread *t = door_enter();
	struct dpa_uar uar;
	bool found = dpa_outbox_find(t->process, id, &uar);

	if (found) {
		t->uar = uar;
		dpa_slot_top(t->process, t->slot)->ctx.outbox_config_id = (uint16_t)id;
	}
	dpa_door_leave(t);
	return found ? DPA_SUCCESS : DPA_FAILED;
}

static uint32_t door_outbox_uar(uint32_t device_id)
{
	struct dpa_thread *t = door_enter();
	struct dpa_uar uar;
	bool found = dpa_uar_find(device_id, &uar);

	if (found)
		t->uar = uar;
	dpa_door_leave(t);
	return found ? DPA_SUCCESS : DPA_FAILED;
}

static void door_cq_arm(uint32_t ci, uint32_t cqn)
{
	struct dpa_thread *t = bell_enter();

	if (t->uar.bells)
		t->uar.bells->arm(t->uar.device, t->uar.number, cqn, ci);
	dpa_door_leave(t);
}

static void door_msix_send(uint32_t cqn)
{
	struct dpa_thread *t = bell_enter();

	if (t->weak)
		dpa_weak_tells(t->weak, "when flexio_dev_msix_send() tells the host");
	if (t->uar.bells)
		t->uar.bells->empty(t->uar.device, t->uar.number, cqn);
	dpa_door_leave(t);
}

static void door_sq_ring(uint32_t pi, uint32_t qpn)
{
	struct dpa_thread *t = bell_enter();

	if (t->uar.bells)
		t->uar.bells->send(t->uar.device, t->uar.number, qpn, (uint16_t)pi);
	dpa_thread_rang(t);
	dpa_door_leave(t);
}

static uint32_t door_sq_ring_at(uint32_t device_id, uint32_t pi, uint32_t qpn)
{
	struct dpa_thread *t = bell_enter();
	struct dpa_uar uar;
	bool found = dpa_uar_find(device_id, &uar);

	if (found)
		uar.bells->send(uar.device, uar.number, qpn, (uint16_t)pi);
	dpa_thread_rang(t);
	return door_status(t, found);
}

static void door_eq_update(uint32_t ci, uint32_t eqn)
{
	struct dpa_thread *t = bell_enter();

	if (t->uar.bells)
		t->uar.bells->event(t->uar.device, t->uar.number, eqn, ci);
	dpa_door_leave(t);
}

static void door_emulated(uint32_t cqn, uint32_t context, bool force)
{
	struct dpa_thread *t = bell_enter();

	if (t->uar.bells)
		t->uar.bells->emulated(t->uar.device, t->uar.number, cqn, context, force);
	dpa_door_leave(t);
}

static void door_emu_arm(uint32_t cqn, uint32_t context)
{
	door_emulated(cqn, context, false);
}

static void door_emu_trigger(uint32_t cqn, uint32_t context)
{
	door_emulated(cqn, context, true);
}

static uint32_t door_emu_value(uint32_t context)
{
	struct dpa_thread *t = door_enter();
	uint32_t value = t->uar.bells ? t->uar.bells->emulated_value(t->uar.number, context) : 0;

	dpa_door_leave(t);
	return value;
}

static void door_cc_ring(uint32_t ccq_id, uint32_t rate, uint32_t rtt_req, uint32_t next_action)
{
	struct dpa_thread *t = bell_enter();
	const struct dpa_process_attr *attr = &t->process->attr;

	if (t->uar.congestion && attr->congestion)
		attr->congestion(attr->user, ccq_id, rate, rtt_req, next_action);
	dpa_door_leave(t);
}

/* The devices that there are have 64 bits in their register. */
static void door_cc_ring_high(uint64_t value)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct dpa_thread *t = door_enter();

	if (!atomic_flag_test_and_set(&said))
		log_warn("DPA: congestion: this device's doorbell has no high half, so 0x%llx is "
			 "dropped",
			 (unsigned long long)value);
	dpa_door_leave(t);
}

/* ---- other threads, and the own one ---- */

static void door_activate(uint32_t thread_id)
{
	struct dpa_thread *t = bell_enter();

	dpa_process_activate(t->process, thread_id);
	dpa_door_leave(t);
}

static void door_thread_name(void)
{
	struct dpa_thread *t = door_enter();
	struct dpa_process *p = t->process;
	struct flexio_dev_thread_ctx *ctx = &dpa_slot_top(p, t->slot)->ctx;
	uint64_t offset;
	const char *name = dpa_image_where(&p->image, t->entry - (uintptr_t)p->region, &offset);

	(void)text_copy(ctx->thread_name, sizeof(ctx->thread_name), name ? name : "");
	dpa_door_leave(t);
}

static void door_message(uint32_t stream, uint32_t level, const char *text, uint32_t bytes)
{
	struct dpa_thread *t = door_enter();

	dpa_message(t, stream, level, text, min_u32(bytes, DPA_MESSAGE_BYTES));
	dpa_door_leave(t);
}

static void door_trace(uint32_t stream, uint32_t level, uint32_t format_id,
		       const uint64_t args[DPA_TRACE_ARGS])
{
	struct dpa_thread *t = door_enter();

	dpa_trace(t, stream, level, format_id, args);
	dpa_door_leave(t);
}

static void door_trace_send(uint32_t stream, uint32_t records)
{
	struct dpa_thread *t = door_enter();

	dpa_trace_send(t, stream, records);
	dpa_door_leave(t);
}

static void door_nic_config(uint64_t values, uint64_t ids, uint32_t count)
{
	struct dpa_thread *t = door_enter();
	struct dpa_wrong wrong;

	if (!dpa_counters_choose(t->process, values, ids, count, &wrong))
		access_refused(t, wrong.addr, wrong.bytes, wrong.write, __builtin_return_address(0),
			       __builtin_frame_address(0));
	dpa_door_leave(t);
}

static void door_nic_sample(void)
{
	struct dpa_thread *t = door_enter();
	struct dpa_wrong wrong;

	if (!dpa_counters_sample(t->process, &wrong))
		access_refused(t, wrong.addr, wrong.bytes, wrong.write, __builtin_return_address(0),
			       __builtin_frame_address(0));
	dpa_door_leave(t);
}

static uint64_t door_pcc_table(uint32_t gvmi)
{
	struct dpa_thread *t = door_enter();
	const struct dpa_process_attr *attr = &t->process->attr;
	uint64_t at = attr->congestion_table ? attr->congestion_table(attr->user, gvmi) : 0;

	dpa_door_leave(t);
	return at;
}

static struct dpa_reservation *door_reservation(void)
{
	return &dpa_thread_self()->reservation;
}

const struct dpa_door dpa_door_table = {
	.version = DPA_DOOR_VERSION,
	.bytes = sizeof(struct dpa_door),
	.thread_ctx = door_thread_ctx,
	.end = door_end,
	.yield = door_yield,
	.error = door_error,
	.relax = door_relax,
	.time = door_time,
	.check = door_check,
	.window_config = door_window_config,
	.window_mkey = door_window_mkey,
	.window_acquire = door_window_acquire,
	.window_copy = door_window_copy,
	.outbox_config = door_outbox_config,
	.outbox_uar = door_outbox_uar,
	.sq_ring = door_sq_ring,
	.cq_arm = door_cq_arm,
	.eq_update = door_eq_update,
	.msix_send = door_msix_send,
	.emu_arm = door_emu_arm,
	.emu_trigger = door_emu_trigger,
	.cc_ring = door_cc_ring,
	.message = door_message,
	.trace = door_trace,
	.trace_send = door_trace_send,
	.nic_config = door_nic_config,
	.nic_sample = door_nic_sample,
	.pcc_table = door_pcc_table,
	.sq_ring_at = door_sq_ring_at,
	.emu_value = door_emu_value,
	.cc_ring_high = door_cc_ring_high,
	.activate = door_activate,
	.thread_name = door_thread_name,
	.worked = door_worked,
	.fence = door_fence,
	.watch = door_watch,
	.reservation = door_reservation,
};
