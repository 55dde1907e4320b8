// SPDX-License-Identifier: BSD-2-Clause
/*
 * See dpa/crash.h.  Device code keeps frame pointers, and its stacks are memory that it may have
 * spoiled: each frame has to lie above the one before it, on the same stack.
 */
#include "dpa/crash.h"

#include <string.h>
#include <sys/mman.h>

#include "dpa/process.h"

struct frames {
	struct dpa_frame *frame;
	uint32_t n, room;
};

static bool in_code(const struct dpa_process *p, uint64_t pc)
{
	return dpa_image_has(&p->image, pc - (uintptr_t)p->region, 1, PROT_EXEC);
}

/* Reads two words of the stack; false: it has none there. */
static bool stack_words(const struct dpa_process *p, uint32_t slot, uint64_t addr,
			uint64_t words[2])
{
	uint64_t low = (uintptr_t)dpa_slot_stack(p, slot);

	if (addr % sizeof(words[0]) ||
	    !range_inside(addr - low, 2 * sizeof(words[0]), DPA_STACK_BYTES))
		return false;
	memcpy(words, (const void *)(uintptr_t)addr, 2 * sizeof(words[0]));
	return true;
}

/* back: pc is where a call returns to, so this looks for the instruction before it. */
static void frame_add(struct frames *f, const struct dpa_process *p, struct dpa_frame frame,
		      bool back)
{
	if (f->n == f->room)
		return;
	frame.image = UINT64_MAX;
	if (in_code(p, frame.pc - back)) {
		frame.image = frame.pc - back - (uintptr_t)p->region;
		frame.name = dpa_image_where(&p->image, frame.image, &frame.offset);
	}
	f->frame[f->n++] = frame;
}

/*
 * A function has a frame, except during its first two instructions and its last.  There the frame
 * pointer is still, or again, the caller's, and the return address is at the top of the stack.  The
 * same holds behind a jump to nowhere.  0: the frame is there.
 */
static uint64_t return_address(const struct dpa_process *p, const struct dpa_left *left)
{
#if defined(__aarch64__)
	return in_code(p, left->registers.pc) ? 0 : left->registers.all.regs[30];
#else
	const uint8_t ret = 0xc3;
	uint64_t pc = left->registers.pc, offset = 0, words[2];
	bool named;

	if (left->registers.returns || !stack_words(p, left->slot, left->registers.sp, words))
		return 0;
	if (!in_code(p, pc))
		return words[0];
	named = dpa_image_where(&p->image, pc - (uintptr_t)p->region, &offset);
	if (named && offset == 1)
		return words[1];
	return (named && !offset) || !memcmp((const void *)(uintptr_t)pc, &ret, 1) ? words[0] : 0;
#endif
}

static void thread_frames(struct frames *f, const struct dpa_process *p,
			  const struct dpa_left *left, uint32_t number)
{
	struct dpa_frame frame = {
		.thread = number,
		.pc = left->registers.pc,
		.sp = left->registers.sp,
		.fp = left->registers.fp,
	};
	uint64_t words[2], caller = return_address(p, left);

	frame_add(f, p, frame, left->registers.returns);
	if (in_code(p, caller)) {
		frame.depth++;
		frame.pc = caller;
		frame_add(f, p, frame, true);
	}
	while (frame.depth < DPA_FRAMES_MAX && stack_words(p, left->slot, frame.fp, words) &&
	       words[1]) {
		bool upwards = words[0] > frame.fp;

		frame.depth++;
		frame.pc = words[1];
		frame.sp = frame.fp + sizeof(words);
		frame.fp = words[0];
		if (!in_code(p, frame.pc))
			return;
		frame_add(f, p, frame, true);
		if (!upwards)
			return;
	}
}

bool dpa_crash_left(const struct dpa_thread *t, struct dpa_left *left)
{
	if (t == t->process->crashed)
		*left = t->process->crash;
	else if (atomic_load(&t->running))
		return false;
	else
		*left = (struct dpa_left){t->outcome, t->registers, t->fault, t->slot};
	return left->registers.known &&
	       (left->outcome == DPA_OUT_FAULT || left->outcome == DPA_OUT_ERROR ||
		left->outcome == DPA_OUT_STOPPED);
}

uint32_t dpa_crash_read(struct dpa_process *p, struct dpa_crash *crash, struct dpa_frame *frame,
			uint32_t room)
{
	struct frames f = {frame, 0, room};
	struct dpa_left left;
	uint32_t number = 0;

	*crash = (struct dpa_crash){0};
	if (dpa_process_state(p) != DPA_FATAL)
		return 0;
	pthread_mutex_lock(&p->lock);
	if (p->crashed && p->crash.outcome == DPA_OUT_FAULT) {
		const struct dpa_fault *fault = &p->crash.fault;

		*crash = (struct dpa_crash){true, (uint32_t)fault->signum, fault->write,
					    fault->addr, fault->bytes};
	}
	if (p->crashed && dpa_crash_left(p->crashed, &left))
		thread_frames(&f, p, &left, number);
	for (const struct dpa_thread *t = p->threads; t; t = t->next)
		if (t != p->crashed && dpa_crash_left(t, &left))
			thread_frames(&f, p, &left, ++number);
	pthread_mutex_unlock(&p->lock);
	return f.n;
}
