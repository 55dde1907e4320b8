// SPDX-License-Identifier: BSD-2-Clause
/* DPA processes: how they come, fail and go, and their region of memory. */
#include "dpa/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "dpa/debugger.h"
#include "dpa/place.h"

/* ---- the region: heap, and stacks of threads ---- */

#define SIGNAL_STACKS_BYTES \
	(2ull * DPA_SIGNAL_APART_BYTES + (uint64_t)DPA_THREADS * DPA_SIGNAL_SLOT_BYTES)

static uint64_t heap_offset(const struct dpa_process *p)
{
	return align_up(p->image.span, DPA_GUARD_BYTES) + DPA_GUARD_BYTES;
}

/* Returns the size of the heap of a new process. */
static uint64_t heap_bytes(void)
{
	const char *text = getenv("SOFTHCA_DPA_HEAP_MIB");
	uint64_t mib = DPA_HEAP_MIB;
	char *end;

	if (text && *text) {
		mib = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
		if (!mib || *end || mib > DPA_HEAP_MIB_MAX) {
			log_warn("SOFTHCA_DPA_HEAP_MIB is a number of MiB from 1 to %u, not: %s",
				 DPA_HEAP_MIB_MAX, text);
			mib = DPA_HEAP_MIB;
		}
	}
	return mib << 20;
}

static uint64_t redzone_bytes(void)
{
	const char *text = getenv("SOFTHCA_DPA_REDZONES");

	if (!text || !*text || !strcmp(text, "0"))
		return 0;
	if (strcmp(text, "1") != 0)
		log_warn("SOFTHCA_DPA_REDZONES is 0 or 1, not: %s", text);
	return strcmp(text, "1") ? 0 : DPA_REDZONE_BYTES;
}

static must_check int region_map(struct dpa_process *p, uint64_t heap)
{
	uint64_t stacks = heap_offset(p) + heap + DPA_GUARD_BYTES;

	p->region_bytes = stacks + (uint64_t)DPA_THREADS * DPA_SLOT_BYTES;
	p->region = sparse_map(p->region_bytes, PROT_NONE, -1, 0);
	if (!p->region)
		return -ENOMEM;
	p->stacks = p->region + stacks;
	p->signal_stacks = sparse_map(SIGNAL_STACKS_BYTES, PROT_NONE, -1, 0);
	if (!p->signal_stacks)
		return -ENOMEM;
	/* A child has no threads, so it does not need the region. */
	(void)madvise(p->region, p->region_bytes, MADV_DONTFORK);
	(void)madvise(p->signal_stacks, SIGNAL_STACKS_BYTES, MADV_DONTFORK);
	if (mprotect(p->region + heap_offset(p), heap, PROT_READ | PROT_WRITE))
		return -ENOMEM;
	return dpa_heap_open(&p->heap, (uintptr_t)p->region + heap_offset(p), heap);
}

/*
 * Makes the region for the image that is open; -ENOMEM.  Closing also undoes a failed open.  The
 * kernel gives memory only where something has been written.
 */
static must_check int dpa_region_open(struct dpa_process *p)
{
	uint64_t heap = heap_bytes();
	int ret = region_map(p, heap);

	if (ret) {
		log_warn("DPA: there are no addresses for a process with %llu MiB of heap "
			 "(SOFTHCA_DPA_HEAP_MIB)",
			 (unsigned long long)(heap >> 20));
		return ret;
	}
	p->heap.redzone = redzone_bytes();
	return 0;
}

/* Returns the range for which checked code need not ask at the door: the whole region, or without
 * variables and heap if the heap has redzones, or accesses are watched. */
static uint64_t dpa_region_unasked(const struct dpa_process *p, uint64_t *bytes)
{
	uint64_t stacks = (uint64_t)(p->stacks - p->region);

	bool asks = p->heap.redzone || p->race;

	*bytes = asks ? p->region_bytes - stacks : p->region_bytes;
	return (uintptr_t)(asks ? p->stacks : p->region);
}

static void dpa_region_close(struct dpa_process *p)
{
	if (p->heap.tag)
		dpa_heap_close(&p->heap);
	if (p->region)
		munmap(p->region, p->region_bytes);
	if (p->signal_stacks)
		munmap(p->signal_stacks, SIGNAL_STACKS_BYTES);
}

uint8_t *dpa_slot_stack(const struct dpa_process *p, uint32_t slot)
{
	return p->stacks + (uint64_t)slot * DPA_SLOT_BYTES + DPA_GUARD_BYTES;
}

uint8_t *dpa_slot_signal_stack(const struct dpa_process *p, uint32_t slot)
{
	return p->signal_stacks + DPA_SIGNAL_APART_BYTES + (uint64_t)slot * DPA_SIGNAL_SLOT_BYTES +
	       DPA_GUARD_BYTES;
}

struct dpa_stack_top *dpa_slot_top(const struct dpa_process *p, uint32_t slot)
{
	uint64_t bytes = align_up(sizeof(struct dpa_stack_top), 64);

	return (struct dpa_stack_top *)(void *)(dpa_slot_stack(p, slot) + DPA_STACK_BYTES - bytes);
}

static bool slot_open(const struct dpa_process *p, uint32_t slot)
{
	const int prot = PROT_READ | PROT_WRITE;

	return !mprotect(dpa_slot_stack(p, slot), DPA_STACK_BYTES, prot) &&
	       !mprotect(dpa_slot_signal_stack(p, slot), DPA_SIGNAL_STACK_BYTES, prot);
}

/* Takes a stack.  The lock is held.  -ENOSPC: all stacks are taken. */
static must_check int dpa_slot_take(struct dpa_process *p, uint32_t *slot)
{
	for (uint32_t i = 0; i < DPA_THREADS; i++) {
		uint64_t bit = 1ull << i % 64;

		if (p->slots[i / 64] & bit)
			continue;
		if (!(p->slots_ready[i / 64] & bit) && !slot_open(p, i))
			return -ENOMEM;
		p->slots_ready[i / 64] |= bit;
		p->slots[i / 64] |= bit;
		*slot = i;
		return 0;
	}
	return -ENOSPC;
}

static void dpa_slot_give(struct dpa_process *p, uint32_t slot)
{
	p->slots[slot / 64] &= ~(1ull << slot % 64);
}

/* ---- memory ---- */

void dpa_memory_info(struct dpa_process *p, struct dpa_heap_info *info)
{
	pthread_mutex_lock(&p->heap_lock);
	*info = (struct dpa_heap_info){p->heap.base, p->heap.bytes, p->heap.requested,
				       p->heap.allocated};
	pthread_mutex_unlock(&p->heap_lock);
}

uint64_t dpa_memory_alloc(struct dpa_process *p, uint64_t bytes, uint64_t by)
{
	uint64_t addr, taken;

	pthread_mutex_lock(&p->heap_lock);
	p->heap.by = by;
	addr = dpa_heap_alloc(&p->heap, bytes);
	taken = p->heap.allocated;
	pthread_mutex_unlock(&p->heap_lock);
	if (!addr && bytes)
		log_warn("DPA: the heap has no room for %llu bytes: %llu of its %llu MiB are taken "
			 "(SOFTHCA_DPA_HEAP_MIB)",
			 (unsigned long long)bytes, (unsigned long long)taken >> 20,
			 (unsigned long long)p->heap.bytes >> 20);
	if (addr && p->race)
		dpa_race_forget(p->race, addr, bytes);
	return addr;
}

bool dpa_memory_free(struct dpa_process *p, uint64_t addr, uint64_t by)
{
	bool done;

	pthread_mutex_lock(&p->heap_lock);
	p->heap.by = by;
	done = dpa_heap_free(&p->heap, addr);
	pthread_mutex_unlock(&p->heap_lock);
	return done;
}

bool dpa_memory_has(struct dpa_process *p, uint64_t addr, uint64_t bytes)
{
	bool has;

	pthread_mutex_lock(&p->heap_lock);
	has = dpa_heap_has(&p->heap, addr, bytes);
	pthread_mutex_unlock(&p->heap_lock);
	return has;
}

bool dpa_memory_writable(struct dpa_process *p, uint64_t addr, uint64_t bytes,
			 struct dpa_overrun *overrun)
{
	struct dpa_heap_block block;

	*overrun = (struct dpa_overrun){0};
	if (!dpa_memory_part(p, addr, bytes))
		return dpa_image_has(&p->image, addr - (uintptr_t)p->region, bytes, PROT_WRITE);
	pthread_mutex_lock(&p->heap_lock);
	overrun->found = dpa_heap_overrun(&p->heap, addr, bytes, &block);
	pthread_mutex_unlock(&p->heap_lock);
	overrun->block = block.addr;
	overrun->bytes = block.bytes;
	return true;
}

bool dpa_memory_allows(struct dpa_process *p, uint64_t addr, uint64_t bytes)
{
	uint64_t heap = p->heap.base - (uintptr_t)p->region, at = addr - (uintptr_t)p->region;

	if (!range_inside(at, bytes, p->region_bytes))
		return false;
	return !p->heap.redzone || at + bytes <= heap || at >= heap + p->heap.bytes ||
	       dpa_memory_has(p, addr, bytes);
}

void dpa_memory_meant(struct dpa_process *p, uint64_t addr, uint64_t bytes,
		      struct dpa_heap_block *block)
{
	*block = (struct dpa_heap_block){0};
	if (!p->heap.redzone)
		return;
	pthread_mutex_lock(&p->heap_lock);
	dpa_heap_meant(&p->heap, addr, bytes, block);
	pthread_mutex_unlock(&p->heap_lock);
}

void *dpa_memory_part(const struct dpa_process *p, uint64_t addr, uint64_t bytes)
{
	return range_inside(addr - p->heap.base, bytes, p->heap.bytes) ? (void *)(uintptr_t)addr
								       : NULL;
}

/* ---- life ---- */

#define CODE_ILLEGAL 0x42u /* an error that the program may not report */
#define CODE_USER    0x80u /* the first that it may */

/* ---- the image ---- */

/* This believes only the record's front, and only before any code of the image runs. */
static const char *image_admit(const struct dpa_process *p, const struct dpa_image_info *info)
{
	(void)p;
	if (info->magic != DPA_IMAGE_MAGIC)
		return "it was not linked with the device library";
	if (info->version != DPA_DOOR_VERSION || info->bytes != sizeof(*info) ||
	    info->door_bytes > sizeof(struct dpa_door))
		return "it was built for another version of the runtime: build the program anew";
	return NULL;
}

/* Only code that is checked goes to the copies of window memory, and only that of a library with
 * this fence tells of its fences. */
static bool image_may_be_weak(const struct dpa_image_info *info)
{
	const uint32_t bytes = offsetof(struct dpa_door, fence) + sizeof(dpa_door_table.fence);

	if (info->flags & DPA_IMAGE_CHECKED && info->door_bytes >= bytes)
		return true;
	log_warn("SOFTHCA_DPA_MEMORY: the image is not checked, or is older: its windows are "
		 "coherent");
	return false;
}

/* Code that is compiled with -fsanitize=thread brings this function along. */
static int race_open(struct dpa_process *p)
{
	uint64_t at;

	if (!dpa_image_function(&p->image, "__tsan_init", &at))
		return 0;
	p->race = dpa_race_new(p, (uintptr_t)p->region, (uint64_t)(p->stacks - p->region));
	return p->race ? 0 : -ENOMEM;
}

static int image_refused(const char *why)
{
	log_warn("DPA: the image of the program is refused: %s", why);
	return -EINVAL;
}

static int image_open(struct dpa_process *p)
{
	const char *wrong;
	uint64_t info;
	int ret;

	wrong = dpa_image_open(&p->image, p->attr.elf, p->attr.elf_bytes);
	if (!wrong && !dpa_image_variable(&p->image, "__dpa_image_info",
					  sizeof(struct dpa_image_info), &info))
		wrong = "it was not linked with the device library";
	if (wrong)
		return image_refused(wrong);
	ret = dpa_region_open(p);
	if (ret)
		return ret;
	ret = dpa_image_load(&p->image, p->region);
	if (ret)
		return ret;
	p->info = (struct dpa_image_info *)(void *)(p->region + info);
	wrong = image_admit(p, p->info);
	if (wrong)
		return image_refused(wrong);
	ret = race_open(p);
	if (ret)
		return ret;
	p->weak = dpa_weak_wanted() && image_may_be_weak(p->info);
	if (p->weak || p->race)
		p->info->flags |= DPA_IMAGE_WATCHED;
	p->info->door = (uintptr_t)&dpa_door_table;
	p->info->region_begin = dpa_region_unasked(p, &p->info->region_bytes);
	dpa_streams_show(&p->streams, p->info);
	/* Without memory for it debuggers only know less. */
	p->shown = dpa_debugger_show(p->attr.elf, p->attr.elf_bytes, (uintptr_t)p->region);
	return 0;
}

uint64_t dpa_process_function(const struct dpa_process *p, const char *name)
{
	uint64_t at;

	return dpa_image_function(&p->image, name, &at) ? (uintptr_t)p->region + at : 0;
}

bool dpa_process_has_code(const struct dpa_process *p, uint64_t addr)
{
	return dpa_image_has(&p->image, addr - (uintptr_t)p->region, 1, PROT_EXEC);
}

/* ---- up and down ---- */

static void process_free(struct dpa_process *p)
{
	/* Forgotten while the code is there, because a debugger may have breakpoints in it. */
	dpa_debugger_forget(p->shown);
	dpa_race_free(p->race);
	dpa_region_close(p);
	dpa_streams_free(&p->streams);
	dpa_counters_free(&p->counters);
	pthread_mutex_destroy(&p->heap_lock);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

int dpa_process_create(const struct dpa_process_attr *attr, struct dpa_process **out)
{
	struct dpa_process *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return -ENOMEM;
	atomic_store(&p->references, 1);
	p->attr = *attr;
	pthread_mutex_init(&p->heap_lock, NULL);
	pthread_mutex_init(&p->lock, NULL);
	dpa_streams_init(&p->streams);
	dpa_counters_init(&p->counters);
	adaptive_spin_init();
	ret = image_open(p);
	if (ret) {
		process_free(p);
		return ret;
	}
	*out = p;
	return 0;
}

void dpa_process_hold(struct dpa_process *p)
{
	atomic_fetch_add(&p->references, 1);
}

void dpa_process_put(struct dpa_process *p)
{
	if (atomic_fetch_sub(&p->references, 1) != 1)
		return;
	free(p->attr.elf);
	process_free(p);
}

static void thread_free(struct dpa_thread *t)
{
	dpa_weak_free(t->weak);
	free(t);
}

/* Only the first change counts. */
static bool state_change(struct dpa_process *p, enum dpa_state to, uint32_t code)
{
	uint32_t from = DPA_RUNNING;

	if (!atomic_compare_exchange_strong(&p->state, &from, to))
		return false;
	atomic_store(&p->code, code);
	return true;
}

enum dpa_state dpa_process_state(const struct dpa_process *p)
{
	return (enum dpa_state)atomic_load(&p->state);
}

uint32_t dpa_process_code(const struct dpa_process *p)
{
	return atomic_load(&p->code);
}

/*
 * The lock is held.  The state keeps runs from beginning; t itself has left its run.  It tells all
 * threads before it waits for one: if more of them run than there are processors, each has to get
 * its turn to hear it.
 */
static void threads_stop(struct dpa_process *p, const struct dpa_thread *t)
{
	/* threads that wait for the host to read what they print go on without */
	dpa_streams_hurry(&p->streams, true);
	for (struct dpa_thread *other = p->threads; other; other = other->next)
		if (other != t)
			dpa_thread_tell_stop(other);
	for (struct dpa_thread *other = p->threads; other; other = other->next)
		if (other != t)
			dpa_thread_stop(other);
	dpa_streams_hurry(&p->streams, false);
}

/* Stops all threads but t of a process that has come to an end.  A thread that destroys the process
 * stops all, and they may be gone already. */
static void others_stop(struct dpa_process *p, const struct dpa_thread *t)
{
	pthread_mutex_lock(&p->lock);
	if (dpa_process_state(p) != DPA_ENDED)
		threads_stop(p, t);
	pthread_mutex_unlock(&p->lock);
}

void dpa_process_finish(struct dpa_process *p)
{
	if (state_change(p, DPA_FINISHED, DPA_CODE_FINISHED))
		others_stop(p, NULL);
}

void dpa_process_end(struct dpa_process *p)
{
	struct dpa_thread *t;

	atomic_store(&p->state, DPA_ENDED);
	dpa_streams_end(&p->streams);
	pthread_mutex_lock(&p->lock);
	threads_stop(p, NULL);
	for (t = p->threads; t; t = t->next) {
		atomic_store(&t->end, 1);
		dpa_thread_wake(t);
	}
	pthread_mutex_unlock(&p->lock);
	/* Nobody makes a thread any more. */
	while ((t = p->threads)) {
		p->threads = t->next;
		pthread_join(t->pthread, NULL);
		thread_free(t);
	}
	p->idle = NULL;
}

/* ---- what device code activates ---- */

void dpa_activated_link(struct dpa_process *p, struct dpa_activated *a)
{
	spin_lock(&p->activated_lock);
	a->next = p->activated;
	p->activated = a;
	spin_unlock(&p->activated_lock);
}

void dpa_activated_unlink(struct dpa_process *p, const struct dpa_activated *a)
{
	struct dpa_activated **at = &p->activated;

	spin_lock(&p->activated_lock);
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	spin_unlock(&p->activated_lock);
}

void dpa_process_activate(struct dpa_process *p, uint32_t id)
{
	struct dpa_activated *a;

	spin_lock(&p->activated_lock);
	for (a = p->activated; a && a->id != id; a = a->next)
		;
	if (a)
		a->activate(a);
	spin_unlock(&p->activated_lock);
}

/* ---- threads ---- */

int dpa_process_thread(struct dpa_process *p, uint32_t id, void *(*main)(struct dpa_thread *t),
		       void *user, struct dpa_thread **out)
{
	struct dpa_thread *t;
	int ret;

	/* It would never run. */
	if (dpa_process_state(p) != DPA_RUNNING)
		return -ESHUTDOWN;
	t = aligned_alloc(_Alignof(struct dpa_thread), sizeof(*t));
	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	t->process = p;
	t->main = main;
	t->user = user;
	t->id = id;
	atomic_store(&t->partner, DPA_NOWHERE);
	atomic_store(&t->place, DPA_NOWHERE);
	ret = -ENOMEM;
	t->weak = p->weak ? dpa_weak_new(p) : NULL;
	if (p->weak && !t->weak)
		goto free_thread;
	ret = dpa_slot_take(p, &t->slot);
	if (ret)
		goto free_thread;
	memset(dpa_slot_top(p, t->slot), 0, sizeof(struct dpa_stack_top));
	dpa_slot_top(p, t->slot)->ctx.version = 1;
	dpa_slot_top(p, t->slot)->ctx.thread_id = t->id;
	ret = dpa_thread_start(t);
	if (ret)
		goto give_slot;
	t->next = p->threads;
	p->threads = t;
	*out = t;
	return 0;

give_slot:
	dpa_slot_give(p, t->slot);
free_thread:
	thread_free(t);
	return ret;
}

static void threads_unlist(struct dpa_process *p, const struct dpa_thread *t)
{
	struct dpa_thread **at = &p->threads;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (p->crashed == t)
		p->crashed = NULL;
}

void dpa_process_thread_end(struct dpa_process *p, struct dpa_thread *t)
{
	pthread_mutex_lock(&p->lock);
	dpa_thread_stop(t);
	atomic_store(&t->end, 1);
	dpa_thread_wake(t);
	pthread_mutex_unlock(&p->lock);
	/* Without the lock, which the thread takes if its process has just failed. */
	pthread_join(t->pthread, NULL);
	/* Whoever has waited for that knows what the thread has stored. */
	if (p->race)
		dpa_race_publish(p->race, t->slot, DPA_RACE_HOST, __ATOMIC_RELEASE);
	pthread_mutex_lock(&p->lock);
	threads_unlist(p, t);
	dpa_slot_give(p, t->slot);
	pthread_mutex_unlock(&p->lock);
	thread_free(t);
}

/* ---- the end of a process by its own code ---- */

int dpa_process_on_error(struct dpa_process *p, uint64_t function)
{
	int ret = -EBUSY;

	pthread_mutex_lock(&p->lock);
	if (dpa_process_state(p) != DPA_RUNNING) {
		ret = -ESHUTDOWN;
	} else if (!p->threads) {
		p->on_error = function;
		ret = 0;
	}
	pthread_mutex_unlock(&p->lock);
	return ret;
}

static void fault_log(const struct dpa_thread *t, const char *who)
{
	const struct dpa_process *p = t->process;
	uint64_t offset = 0;
	const char *where =
		dpa_image_where(&p->image, t->registers.pc - (uintptr_t)p->region, &offset);

	log_warn("DPA: %s faults (%s) at address 0x%llx, in %s+0x%llx", who,
		 t->fault.stack	   ? "stack overflow"
		 : t->fault.signum ? strsignal(t->fault.signum)
				   : "access refused",
		 (unsigned long long)t->fault.addr, where ? where : "no function",
		 (unsigned long long)offset);
}

/* Takes another stack for the thread, so that its own stays as it was left; if there is none, the
 * error handler runs on the old one. */
static void error_stack_take(struct dpa_thread *t)
{
	struct dpa_process *p = t->process;
	struct flexio_dev_thread_ctx ctx = dpa_slot_top(p, t->slot)->ctx;
	uint32_t slot;

	pthread_mutex_lock(&p->lock);
	if (!dpa_slot_take(p, &slot)) {
		t->slot = slot;
		dpa_slot_top(p, slot)->ctx = ctx;
	}
	pthread_mutex_unlock(&p->lock);
}

static void error_stack_give(struct dpa_thread *t)
{
	struct dpa_process *p = t->process;

	pthread_mutex_lock(&p->lock);
	if (t->slot != p->crash.slot) {
		dpa_slot_give(p, t->slot);
		t->slot = p->crash.slot;
	}
	pthread_mutex_unlock(&p->lock);
}

static void error_handler_run(struct dpa_thread *t, uint32_t code)
{
	error_stack_take(t);
	if (dpa_thread_run(t, t->process->on_error, code, 0, true) == DPA_OUT_FAULT)
		fault_log(t, "the error handler");
	error_stack_give(t);
}

/* A refused access counts as a fault like any other. */
static uint32_t fault_code(const struct dpa_fault *fault)
{
	return fault->signum ? (uint32_t)fault->signum : SIGSEGV;
}

static void process_fail(struct dpa_thread *t, enum dpa_outcome outcome)
{
	struct dpa_process *p = t->process;
	uint32_t code = outcome == DPA_OUT_FAULT ? fault_code(&t->fault)
			: t->value < CODE_USER	 ? CODE_ILLEGAL
						 : (uint32_t)t->value;
	bool first;

	pthread_mutex_lock(&p->lock);
	first = state_change(p, DPA_FATAL, code);
	if (first) {
		p->crashed = t;
		p->crash = (struct dpa_left){t->outcome, t->registers, t->fault, t->slot};
		/* Told before the others are stopped, which takes its time if there are many; an
		 * asker that wants to know where they are waits for the lock. */
		p->attr.failed(p->attr.user);
		threads_stop(p, t);
	}
	pthread_mutex_unlock(&p->lock);
	if (first && outcome == DPA_OUT_FAULT)
		fault_log(t, "device code");
	if (first && p->on_error)
		error_handler_run(t, code);
}

void dpa_process_after(struct dpa_thread *t, enum dpa_outcome outcome)
{
	struct dpa_process *p = t->process;

	if (outcome == DPA_OUT_FAULT || outcome == DPA_OUT_ERROR) {
		process_fail(t, outcome);
	} else if (outcome == DPA_OUT_PROCESS_FINISHED &&
		   state_change(p, DPA_FINISHED, DPA_CODE_FINISHED)) {
		others_stop(p, t);
	}
}
