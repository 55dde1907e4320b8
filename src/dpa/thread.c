// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/thread.h. */
#include "dpa/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/checkers.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "base/trace.h"
#include "dpa/place.h"
#include "dpa/process.h"

/*
 * Calls function(a, b) on the stack that ends at top (aligned to 16), after it has stored the
 * position of the runtime's stack.  Returns the value given to dpa_switch_back.  If the function
 * returns, it calls dpa_returned on that stack with the result.
 */
uint64_t dpa_switch_to(uint64_t a, uint64_t b, uint64_t function, void *top, void **runtime_sp);
/* Continues behind the dpa_switch_to that stored runtime_sp; called on any stack of the thread. */
_Noreturn void dpa_switch_back(void *runtime_sp, uint64_t value);
_Noreturn void dpa_returned(uint64_t value);

/* ---- the switch between the two stacks ---- */

/*
 * The runtime's stack keeps the registers that a callee preserves.  Nothing that
 * device code leaves behind is used, except that the stack pointer has to name memory; if it does
 * not, that is one more fault of device code.
 */

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dpa_switch_to\n"
	".hidden dpa_switch_to\n"
	".type dpa_switch_to, @function\n"
	"dpa_switch_to:\n"
	".cfi_startproc\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	sub $8, %rsp\n"
	"	stmxcsr (%rsp)\n"
	"	fnstcw 4(%rsp)\n"
	"	mov %rsp, (%r8)\n"
	"	mov %rcx, %rsp\n"
	"	.cfi_undefined %rip\n" /* backtraces of device code end here */
	"	xor %ebp, %ebp\n"
	"	call *%rdx\n"
	"	mov %rax, %rdi\n"
	"	and $-16, %rsp\n"
	"	call dpa_returned\n"
	"	ud2\n"
	".cfi_endproc\n"
	".size dpa_switch_to, .-dpa_switch_to\n"
	".globl dpa_switch_back\n"
	".hidden dpa_switch_back\n"
	".type dpa_switch_back, @function\n"
	"dpa_switch_back:\n"
	".cfi_startproc\n"
	"	mov %rdi, %rsp\n"
	"	mov %rsi, %rax\n"
	"	cld\n"
	"	ldmxcsr (%rsp)\n"
	"	fldcw 4(%rsp)\n"
	"	add $8, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".cfi_endproc\n"
	".size dpa_switch_back, .-dpa_switch_back\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dpa_switch_to\n"
	".hidden dpa_switch_to\n"
	".type dpa_switch_to, %function\n"
	"dpa_switch_to:\n"
	".cfi_startproc\n"
	"	sub sp, sp, #176\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mrs x9, fpcr\n"
	"	str x9, [sp, #160]\n"
	"	mov x9, sp\n"
	"	str x9, [x4]\n"
	"	mov sp, x3\n"
	"	.cfi_undefined x30\n"
	"	mov x29, xzr\n"
	"	blr x2\n"
	"	bl dpa_returned\n"
	"	brk #0\n"
	".cfi_endproc\n"
	".size dpa_switch_to, .-dpa_switch_to\n"
	".globl dpa_switch_back\n"
	".hidden dpa_switch_back\n"
	".type dpa_switch_back, %function\n"
	"dpa_switch_back:\n"
	".cfi_startproc\n"
	"	mov sp, x0\n"
	"	mov x0, x1\n"
	"	ldr x9, [sp, #160]\n"
	"	msr fpcr, x9\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #176\n"
	"	ret\n"
	".cfi_endproc\n"
	".size dpa_switch_back, .-dpa_switch_back\n");
#else
#error "no switch of stacks for this architecture"
#endif

/* ---- threads ---- */

#define RUNTIME_STACK_BYTES (256u << 10)
/* How long a stop waits before it asks again, because it may find the thread in the runtime. */
#define STOP_MIN_NS 200000u
#define STOP_MAX_NS 20000000u
/* Frames of the runtime, from the end of a function of the door to device code. */
#define DOOR_FRAMES_MAX 8u
/*
 * A thread whose waits have found work also looks for it after its bells, until that was in vain
 * this often.
 */
#define POLLS_AT_BELLS 16u
/* Any signal with a handler of ours would do; gdb is told to be quiet about this one. */
#define STOP_SIGNAL SIGBUS

static __thread struct dpa_thread *self;

struct dpa_thread *dpa_thread_self(void)
{
	return self;
}

/* ---- waiting ---- */

bool dpa_thread_rouse(struct dpa_thread *t)
{
	/* The thread first says that it sleeps, and then looks once more. */
	if (!atomic_load(&t->asleep))
		return false;
	atomic_fetch_add(&t->word, 1);
	atomic_store_explicit(&t->roused_ns, clock_ns(), memory_order_relaxed);
	atomic_store_explicit(&t->partner, dpa_place_here(), memory_order_relaxed);
	return true;
}

void dpa_thread_wake(struct dpa_thread *t)
{
	if (dpa_thread_rouse(t))
		futex_wake_all(&t->word, FUTEX_OF_PROCESS);
}

static void thread_settle(struct dpa_thread *t, uint32_t place)
{
	if (atomic_load_explicit(&t->place, memory_order_relaxed) != place)
		atomic_store(&t->place, place);
}

/* ---- standing in for the engine ---- */

static bool thread_polls(void *user)
{
	struct dpa_thread *t = user;

	t->relied_on = true;
	if (!t->stand_in->poll(&t->stand_in_polls))
		return false;
	t->polls_at_bells = POLLS_AT_BELLS;
	return true;
}

void dpa_thread_rang(struct dpa_thread *t)
{
	if (t->polls_at_bells && !thread_polls(t))
		t->polls_at_bells--;
}

/* The thread sleeps from now on, and says so if somebody relied on it. */
static void thread_leaves_device(struct dpa_thread *t)
{
	t->polls_at_bells = 0;
	if (!t->relied_on)
		return;
	t->relied_on = false;
	t->stand_in->leave();
}

static bool thread_look(struct dpa_thread *t, bool (*over)(const void *arg), const void *arg)
{
	const struct adaptive_spin_work meanwhile = {thread_polls, t};
	uint32_t here = dpa_place_here();
	bool stands_in;

	if (here == atomic_load_explicit(&t->partner, memory_order_relaxed)) {
		if (!adaptive_spin_leaves_cpu(&t->spin)) {
			thread_settle(t, here);
			return false;
		}
		thread_settle(t, DPA_BETWEEN);
		(void)dpa_place_leave(here);
		here = dpa_place_here();
	}
	thread_settle(t, here);
	stands_in = t->stand_in && t->stand_in->wanted(&t->stand_in_polls);
	return adaptive_spin_until(&t->spin, over, arg, stands_in ? &meanwhile : NULL);
}

void dpa_thread_await(struct dpa_thread *t, bool (*over)(const void *arg), const void *arg)
{
	uint64_t begin, roused;

	if (thread_look(t, over, arg))
		return;
	thread_leaves_device(t);
	begin = clock_ns();
	while (!over(arg)) {
		uint32_t word = atomic_load(&t->word);

		atomic_store(&t->asleep, 1);
		if (!over(arg))
			futex_wait_until(&t->word, word, UINT64_MAX, FUTEX_OF_PROCESS);
		atomic_store(&t->asleep, 0);
	}
	/* The time that the kernel needs to wake a thread does not count. */
	roused = atomic_load_explicit(&t->roused_ns, memory_order_relaxed);
	adaptive_spin_learn(&t->spin, (roused >= begin ? roused : clock_ns()) - begin);
}

/* ---- the thread ---- */

static void *thread_main(void *arg)
{
	struct dpa_thread *t = arg;
	const stack_t stack = {.ss_sp = dpa_slot_signal_stack(t->process, t->slot),
			       .ss_size = DPA_SIGNAL_STACK_BYTES};
	const stack_t none = {.ss_flags = SS_DISABLE};

	/* The device's stack may be the one that has run out. */
	sigaltstack(&stack, NULL);
	self = t;
	own_thread_short_slices();
	atomic_store(&t->tid, (pid_t)syscall(SYS_gettid));
	t->main(t);
	self = NULL;
	sigaltstack(&none, NULL);
	return NULL;
}

uint32_t dpa_thread_number(void)
{
	static _Atomic(uint32_t) number;

	return atomic_fetch_add(&number, 1) % 0xffffff + 1;
}

int dpa_thread_start(struct dpa_thread *t)
{
	const struct own_thread_attr attr = {
		.name = OWN_THREAD_DPA,
		.stack_bytes = RUNTIME_STACK_BYTES,
		.faults = true,
	};

	return own_thread_start(&t->pthread, &attr, thread_main, t);
}

/* ---- into device code, and out ---- */

_Noreturn void dpa_thread_leave(struct dpa_thread *t, enum dpa_outcome outcome, uint64_t value)
{
	t->in_device = false;
	t->outcome = outcome;
	t->value = value;
	dpa_switch_back(t->runtime_sp, 0);
}

_Noreturn void dpa_returned(uint64_t value)
{
	dpa_thread_leave(self, DPA_OUT_RETURNED, value);
}

/* Ends the wait of a stop: see dpa_thread_stop. */
static void run_over(struct dpa_thread *t)
{
	atomic_store(&t->running, 0);
	if (atomic_load(&t->stop) || atomic_load(&t->process->state) != DPA_RUNNING)
		futex_wake_all(&t->running, FUTEX_OF_PROCESS);
}

static bool may_run(struct dpa_thread *t, bool last)
{
	uint32_t state = atomic_load(&t->process->state);

	return !atomic_load(&t->stop) && (state == DPA_RUNNING || (last && state == DPA_FATAL));
}

static bool ended_by_itself(enum dpa_outcome outcome)
{
	return outcome != DPA_OUT_FAULT && outcome != DPA_OUT_ERROR && outcome != DPA_OUT_STOPPED;
}

/* The name for traces. */
static const char *outcome_name(enum dpa_outcome outcome)
{
	static const char *const names[] = {
		[DPA_OUT_RETURNED] = "returned",
		[DPA_OUT_RESCHEDULED] = "rescheduled",
		[DPA_OUT_RETRIGGERED] = "retriggered",
		[DPA_OUT_FINISHED] = "finished",
		[DPA_OUT_PROCESS_FINISHED] = "process-finished",
		[DPA_OUT_FAULT] = "fault",
		[DPA_OUT_ERROR] = "error",
		[DPA_OUT_STOPPED] = "stopped",
		[DPA_OUT_DEAD] = "dead",
	};

	return names[outcome];
}

enum dpa_outcome dpa_thread_run(struct dpa_thread *t, uint64_t function, uint64_t a, uint64_t b,
				bool last)
{
	struct dpa_stack_top *top = dpa_slot_top(t->process, t->slot);

	/* Set first, so that a thread that forbids runs afterwards finds this one. */
	atomic_store(&t->running, 1);
	if (!may_run(t, last)) {
		t->outcome = DPA_OUT_DEAD;
	} else {
		t->uar = dpa_outbox_initial(t->process);
		t->registers.known = false;
		asan_stack_is_empty(dpa_slot_stack(t->process, t->slot), DPA_STACK_BYTES);
		if (t->process->race)
			dpa_race_begin(t->process->race, t->slot);
		t->in_device = true;
		trace(dpa, enter, t->slot, function);
		(void)dpa_switch_to(a, b, function, top, &t->runtime_sp);
		trace(dpa, leave, t->slot, outcome_name(t->outcome));
		if (t->weak)
			dpa_weak_end(t->weak, !ended_by_itself(t->outcome));
		/* The host hears of the end of a call or a task, but not of a handler's. */
		if (t->process->race && !t->yield)
			dpa_race_publish(t->process->race, t->slot, DPA_RACE_HOST,
					 __ATOMIC_RELEASE);
	}
	run_over(t);
	return t->outcome;
}

void dpa_thread_tell_stop(struct dpa_thread *t)
{
	atomic_store(&t->stop, 1);
	if (atomic_load(&t->running))
		syscall(SYS_tgkill, getpid(), atomic_load(&t->tid), STOP_SIGNAL);
}

void dpa_thread_stop(struct dpa_thread *t)
{
	uint64_t wait_ns = STOP_MIN_NS;

	dpa_thread_tell_stop(t);
	while (atomic_load(&t->running)) {
		futex_wait_until(&t->running, 1, clock_ns() + wait_ns, FUTEX_OF_PROCESS);
		wait_ns = min_u64(2 * wait_ns, STOP_MAX_NS);
		dpa_thread_tell_stop(t);
	}
}

/* ---- signals ---- */

static struct dpa_registers registers_of(const void *ucontext)
{
	const ucontext_t *uc = ucontext;
	struct dpa_registers r = {.known = true, .all = uc->uc_mcontext};

#if defined(__x86_64__)
	r.pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	r.sp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
	r.fp = (uint64_t)uc->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
	r.pc = uc->uc_mcontext.pc;
	r.sp = uc->uc_mcontext.sp;
	r.fp = uc->uc_mcontext.regs[29];
#endif
	return r;
}

/* How far below its stack pointer a function stores at most. */
#define BELOW_STACK_BYTES 1024u

/* Tells whether a thread with that stack pointer has left its stack at the lower end. */
static bool stack_ran_out(const struct dpa_thread *t, uint64_t addr, uint64_t sp)
{
	uint64_t low = (uintptr_t)dpa_slot_stack(t->process, t->slot);

	return low - addr - 1 < DPA_GUARD_BYTES && sp < low + BELOW_STACK_BYTES;
}

/* The address of a breakpoint is its own, as with other instructions that fail, not the next
 * one's. */
static struct dpa_fault fault_of(int signum, const siginfo_t *info, struct dpa_registers *r)
{
	struct dpa_fault fault = {.signum = signum, .addr = (uintptr_t)info->si_addr};

	if (signum != SIGTRAP)
		return fault;
#if defined(__x86_64__)
	r->pc--;
#endif
	fault.addr = r->pc;
	return fault;
}

static bool in_image(const struct dpa_process *p, uint64_t pc)
{
	return dpa_image_has(&p->image, pc - (uintptr_t)p->region, 1, PROT_EXEC);
}

bool dpa_signal(int signum, const void *siginfo, void *ucontext)
{
	const siginfo_t *info = siginfo;
	struct dpa_thread *t = self;
	struct dpa_registers r;

	if (!t)
		return false;
	if (info->si_code > 0 && !t->in_device)
		return false;
	r = registers_of(ucontext);
	if (info->si_code > 0) {
		t->fault = fault_of(signum, info, &r);
		t->fault.stack = stack_ran_out(t, t->fault.addr, r.sp);
		t->registers = r;
		dpa_thread_leave(t, DPA_OUT_FAULT, 0);
	}
	/* Somebody else sent it: only we have something to send to the threads of a DPA process. */
	if (t->in_device && atomic_load(&t->stop) && in_image(t->process, r.pc)) {
		t->registers = r;
		dpa_thread_leave(t, DPA_OUT_STOPPED, 0);
	}
	return true;
}

/* ---- the door ---- */

/* A small rest of the stack must not end inside the runtime's functions. */
static void door_check_stack(struct dpa_thread *t)
{
	uint64_t here = (uintptr_t)__builtin_frame_address(0);
	uint64_t low = (uintptr_t)dpa_slot_stack(t->process, t->slot);

	if (here - low >= DPA_DOOR_STACK_BYTES && here - low < DPA_STACK_BYTES)
		return;
	t->registers = (struct dpa_registers){.known = true, .pc = 0, .sp = here, .fp = here};
	t->fault = (struct dpa_fault){.signum = SIGSEGV,
				      .addr = here,
				      .write = true,
				      .stack = here - low < DPA_DOOR_STACK_BYTES ||
					       stack_ran_out(t, here, here)};
	dpa_thread_leave(t, DPA_OUT_FAULT, 0);
}

struct dpa_thread *dpa_door_enter(void)
{
	struct dpa_thread *t = self;

	t->in_device = false;
	door_check_stack(t);
	return t;
}

/* Follows the frames from a function of the door to where it returns to device code; gives unknown
 * registers if there is no way. */
static struct dpa_registers registers_behind(const struct dpa_thread *t, const uint64_t *frame)
{
	uint64_t low = (uintptr_t)dpa_slot_stack(t->process, t->slot);

	for (unsigned i = 0; i < DOOR_FRAMES_MAX; i++) {
		const uint64_t *next;

		if ((uintptr_t)frame % sizeof(*frame) ||
		    !range_inside((uintptr_t)frame - low, 2 * sizeof(*frame), DPA_STACK_BYTES))
			break;
		next = (const uint64_t *)(uintptr_t)frame[0];
		if (in_image(t->process, frame[1]))
			return (struct dpa_registers){.known = true,
						      .returns = true,
						      .pc = frame[1],
						      .sp = (uintptr_t)(frame + 2),
						      .fp = frame[0]};
		if (next <= frame)
			break;
		frame = next;
	}
	return (struct dpa_registers){0};
}

struct dpa_trail dpa_trail_from(const struct dpa_thread *t, const uint64_t *frame)
{
	const struct dpa_process *p = t->process;
	uint64_t low = (uintptr_t)dpa_slot_stack(p, t->slot);
	struct dpa_trail trail = {0};

	for (unsigned i = 0; i < DPA_TRAIL; i++) {
		const uint64_t *next;

		if ((uintptr_t)frame % sizeof(*frame) ||
		    !range_inside((uintptr_t)frame - low, 2 * sizeof(*frame), DPA_STACK_BYTES) ||
		    !dpa_image_has(&p->image, frame[1] - (uintptr_t)p->region, 1, PROT_EXEC))
			break;
		trail.pc[i] = frame[1];
		next = (const uint64_t *)(uintptr_t)frame[0];
		if (next <= frame)
			break;
		frame = next;
	}
	return trail;
}

void dpa_door_leave(struct dpa_thread *t)
{
	if (atomic_load_explicit(&t->stop, memory_order_relaxed)) {
		t->registers = registers_behind(t, __builtin_frame_address(0));
		dpa_thread_leave(t, DPA_OUT_STOPPED, 0);
	}
	t->in_device = true;
}
