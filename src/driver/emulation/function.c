// SPDX-License-Identifier: BSD-2-Clause
/* PCI functions that the card emulates, and the contexts of their doorbells. */
#include "driver/emulation/function.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/spin.h"
#include "base/trace.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/process.h"
#include "wire/inbox.h"

/* ---- contexts of doorbells ---- */

/* A doorbell register of device code has this many values for the handle. */
#define DB_HANDLES (1u << 26)

/*
 * Threads hold the locks of the functions while they tell of a driver's ring, so they take this
 * lock inside of those.
 */
static struct {
	struct spin lock;
	struct db_bell *first;
	uint32_t handles; /* the last handle that was given out; none comes twice */
} bells;

int db_bell_link(struct db_bell *b)
{
	int handle = -ENOSPC;

	spin_lock(&bells.lock);
	if (bells.handles < DB_HANDLES - 1) {
		handle = (int)++bells.handles;
		b->handle = (uint32_t)handle;
		b->next = bells.first;
		bells.first = b;
	}
	spin_unlock(&bells.lock);
	return handle;
}

void db_bell_unlink(struct db_bell *b)
{
	struct db_bell **at = &bells.first;

	spin_lock(&bells.lock);
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	spin_unlock(&bells.lock);
}

/* Lock held. */
static void db_bell_fire(struct db_bell *b)
{
	b->armed = false;
	b->rung = false;
	(void)cq_bell_empty(b->adapter, b->region, b->cqn);
}

void db_bell_rung(struct db_bell *b)
{
	spin_lock(&bells.lock);
	if (b->armed)
		db_bell_fire(b);
	else
		b->rung = true;
	spin_unlock(&bells.lock);
}

void db_bell_ring(uint32_t region, uint32_t cqn, uint32_t handle, bool force)
{
	struct db_bell *b;

	spin_lock(&bells.lock);
	for (b = bells.first; b && b->handle != handle; b = b->next)
		;
	if (b && b->region == region && b->cqn == cqn) {
		if (force || b->rung)
			db_bell_fire(b);
		else
			b->armed = true;
	}
	spin_unlock(&bells.lock);
}

/* ---- functions ---- */

/*
 * See function.h.  Two orders keep processes from missing each other:
 *
 *   a driver sets the queue's bit in 'rung' and then looks who has its context; a process that
 *   takes a context says so and then looks at the bit.  So one of the two sees the doorbell.
 *   a device counts an interrupt and then looks who drives the function; a driver says so before
 *   it reads the count.
 */

struct function {
	struct function *next;
	unsigned refs; /* under making; 0: only the program's mappings keep the function */
	uint32_t device;
	struct process *process;
	struct slot *slots;
	uint64_t word; /* the word of our slot */
	struct emulation *shared;
	struct hidden memory;
	struct doorbell_page *bell;
	int driver; /* our row among the function's drivers; -1: none */
	/* under list.lock */
	struct function_driver *drivers;
	struct function_context *context[EMULATION_QUEUES];
};

/* Held while a function comes or goes, which takes long. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct spin lock; /* guards the list and who hears what; a leaf but for the upcalls */
	struct function *first;
} list;

uint32_t db_bell_value(uint32_t region, uint32_t handle)
{
	const struct db_bell *b;
	uint32_t value = 0;

	spin_lock(&bells.lock);
	for (b = bells.first; b && b->handle != handle; b = b->next)
		;
	if (b && b->region == region)
		value = atomic_load(&b->function->shared->last[b->queue]);
	spin_unlock(&bells.lock);
	return value;
}

/* ---- what drivers ring ---- */

static void function_rung(struct function *f, uint32_t queue, uint32_t value)
{
	struct slot *to;

	trace(emulation, rung, f->device, queue, value);
	atomic_store(&f->shared->last[queue], value);
	atomic_fetch_or(&f->shared->rung, UINT64_C(1) << queue);
	to = slot_of_word(f->slots, atomic_load(&f->shared->context[queue]));
	if (to)
		inbox_raise_emulated(to);
}

/* Several threads and processes may run this at a time: each value goes to one of them. */
static bool function_look_at_bells(void *user)
{
	struct function *f = user;
	bool any = false;

	for (uint32_t q = 0; q < EMULATION_QUEUES; q++) {
		_Atomic(uint32_t) *bell = &f->shared->doorbell[q];
		uint32_t value;

		if (likely(atomic_load_explicit(bell, memory_order_acquire) == EMULATION_SILENT))
			continue;
		value = atomic_exchange(bell, EMULATION_SILENT);
		function_rung(f, q, value);
		any = true;
	}
	return any;
}

/* ---- what others have done; any thread that makes progress ---- */

static void function_look_at_contexts(struct function *f)
{
	uint64_t ours = 0, rung;

	for (uint32_t q = 0; q < EMULATION_QUEUES; q++)
		ours |= (uint64_t)(f->context[q] != NULL) << q;
	rung = ours & atomic_load(&f->shared->rung);
	if (!rung)
		return;
	rung &= atomic_fetch_and(&f->shared->rung, ~rung);
	for (; rung; rung &= rung - 1) {
		struct function_context *c = f->context[__builtin_ctzll(rung)];

		c->rung(c);
	}
}

static void functions_look(void)
{
	spin_lock(&list.lock);
	for (struct function *f = list.first; f; f = f->next) {
		function_look_at_contexts(f);
		for (struct function_driver *d = f->drivers; d; d = d->next)
			d->interrupt(d);
	}
	spin_unlock(&list.lock);
}

/* A driver that was killed may have left its last doorbells in the registers; the control thread. */
static void functions_left(void)
{
	spin_lock(&list.lock);
	for (struct function *f = list.first; f; f = f->next)
		(void)function_look_at_bells(f);
	spin_unlock(&list.lock);
}

/* ---- coming and going ---- */

static int function_map(struct function *f)
{
	int fd, ret = fabric_open_function(f->process->fabric, f->device, &fd);

	if (ret < 0)
		return ret;
	f->shared = mmap(NULL, sizeof(*f->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (f->shared == MAP_FAILED) {
		ret = -errno;
		close(fd);
		return ret;
	}
	(void)madvise(f->shared, sizeof(*f->shared), MADV_DONTFORK);
	f->memory = hidden_keep(fd);
	return 0;
}

static int function_make(uint32_t device, struct function **out)
{
	struct function *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return -ENOMEM;
	f->device = device;
	f->refs = 1;
	f->driver = -1;
	ret = process_get(&f->process);
	if (ret < 0) {
		free(f);
		return ret;
	}
	ret = function_map(f);
	if (ret < 0) {
		process_put(f->process);
		free(f);
		return ret;
	}
	f->slots = wire_process_slots(f->process->wire_process);
	f->word = slot_word(f->slots, (uint32_t)(f->process->slot - f->slots));
	wire_process_hear_emulated(f->process->wire_process, functions_look);
	process_on_function_left(functions_left);
	*out = f;
	return 0;
}

static void function_free(struct function *f)
{
	if (f->bell)
		doorbell_page_destroy(f->bell);
	munmap(f->shared, sizeof(*f->shared));
	hidden_close(&f->memory);
	process_put(f->process);
	free(f);
}

int function_get(uint32_t device, struct function **out)
{
	struct function *f;
	int ret = 0;

	pthread_mutex_lock(&making);
	for (f = list.first; f && f->device != device; f = f->next)
		;
	if (f) {
		f->refs++;
	} else {
		ret = function_make(device, &f);
		if (ret == 0) {
			spin_lock(&list.lock);
			f->next = list.first;
			list.first = f;
			spin_unlock(&list.lock);
		}
	}
	if (ret == 0)
		*out = f;
	pthread_mutex_unlock(&making);
	return ret;
}

/* Frees a function that nobody holds and whose BAR nobody maps.  The caller holds making. */
static void function_end(struct function *f)
{
	struct function **at = &list.first;

	if (f->refs || (f->bell && doorbell_page_mapped(f->bell)))
		return;
	spin_lock(&list.lock);
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	spin_unlock(&list.lock);
	function_free(f);
}

void function_put(struct function *f)
{
	pthread_mutex_lock(&making);
	f->refs--;
	function_end(f);
	pthread_mutex_unlock(&making);
}

void function_unmapped(void)
{
	struct function *f, *next;

	pthread_mutex_lock(&making);
	for (f = list.first; f; f = next) {
		next = f->next;
		function_end(f);
	}
	pthread_mutex_unlock(&making);
}

/* ---- rows that processes take ---- */

/* Takes the row.  False: another process that lives has it.  A row that is ours is taken again. */
static bool row_take(struct function *f, _Atomic(uint64_t) *row)
{
	uint64_t old = atomic_load(row);

	while (!old || old == f->word || !slot_of_word(f->slots, old))
		if (atomic_compare_exchange_strong(row, &old, f->word))
			return true;
	return false;
}

static void row_give(struct function *f, _Atomic(uint64_t) *row)
{
	uint64_t ours = f->word;

	(void)atomic_compare_exchange_strong(row, &ours, 0);
}

/* ---- drivers ---- */

static int function_take_driver_row(struct function *f)
{
	for (int i = 0; i < (int)EMULATION_DRIVERS; i++)
		if (row_take(f, &f->shared->driver[i])) {
			f->driver = i;
			return 0;
		}
	return -EBUSY;
}

int function_drive(struct function *f, struct function_driver *d)
{
	int ret = 0;

	pthread_mutex_lock(&making);
	if (f->driver < 0)
		ret = function_take_driver_row(f);
	if (ret == 0) {
		spin_lock(&list.lock);
		d->next = f->drivers;
		f->drivers = d;
		spin_unlock(&list.lock);
	}
	pthread_mutex_unlock(&making);
	return ret;
}

void function_leave(struct function *f, struct function_driver *d)
{
	struct function_driver **at = &f->drivers;

	pthread_mutex_lock(&making);
	spin_lock(&list.lock);
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	spin_unlock(&list.lock);
	if (!f->drivers) {
		row_give(f, &f->shared->driver[f->driver]);
		f->driver = -1;
	}
	pthread_mutex_unlock(&making);
}

uint32_t function_interrupts(const struct function *f)
{
	return atomic_load(&f->shared->interrupts);
}

int function_memory_fd(const struct function *f)
{
	return hidden_ours(&f->memory) ? f->memory.fd : -EBADF;
}

void function_mapped(struct function *f, uintptr_t addr)
{
	static const _Atomic(bool) no_hooks;
	const struct doorbell_page_attr attr = {
		.regs = (uint8_t *)f->shared,
		.hooks = &no_hooks,
		.look = function_look_at_bells,
		.user = f,
	};
	int ret = 0;

	pthread_mutex_lock(&making);
	if (!f->bell)
		ret = doorbell_page_create(&attr, &f->bell);
	pthread_mutex_unlock(&making);
	if (ret == 0)
		doorbell_mapped(attr.regs, addr);
}

/* ---- its device ---- */

int function_take(struct function *f, uint32_t queue, struct function_context *c)
{
	int ret = 0;

	if (queue >= EMULATION_QUEUES)
		return -EINVAL;
	spin_lock(&list.lock);
	if (f->context[queue] || !row_take(f, &f->shared->context[queue]))
		ret = -EBUSY;
	else
		f->context[queue] = c;
	/* A driver that was killed has left its last doorbells in the registers. */
	if (ret == 0) {
		(void)function_look_at_bells(f);
		function_look_at_contexts(f);
	}
	spin_unlock(&list.lock);
	return ret;
}

void function_give(struct function *f, uint32_t queue)
{
	spin_lock(&list.lock);
	row_give(f, &f->shared->context[queue]);
	f->context[queue] = NULL;
	spin_unlock(&list.lock);
}

void function_interrupt(struct function *f)
{
	uint32_t count = atomic_fetch_add(&f->shared->interrupts, 1) + 1;

	trace(emulation, interrupt, f->device, count);
	for (uint32_t i = 0; i < EMULATION_DRIVERS; i++) {
		struct slot *to = slot_of_word(f->slots, atomic_load(&f->shared->driver[i]));

		if (to)
			inbox_raise_emulated(to);
	}
}

/* A driver may ring and then end without closing its file.  A signal handler may end it. */
static void __attribute__((destructor)) functions_end(void)
{
	if (!spin_try(&list.lock))
		return;
	for (struct function *f = list.first; f; f = f->next)
		if (f->bell)
			(void)function_look_at_bells(f);
	spin_unlock(&list.lock);
}

void function_fork_child(void)
{
	/* Another thread of the parent may have held these locks. */
	pthread_mutex_init(&making, NULL);
	list.lock = (struct spin){0};
	list.first = NULL;
}
