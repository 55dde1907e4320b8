/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a DPA process, for the files of this folder. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/spin.h"
#include "dpa/crash.h"
#include "dpa/door.h"
#include "dpa/dpa.h"
#include "dpa/heap.h"
#include "dpa/image.h"
#include "dpa/outbox.h"
#include "dpa/race.h"
#include "dpa/stream.h"
#include "dpa/thread.h"
#include "dpa/trail.h"
#include "dpa/weak.h"

/* ---- counters of the ports, as device code reads them ---- */

struct dpa_process;

/* The most counters that one choice has. */
#define DPA_COUNTERS 32u

/* The process's choice; a later choice replaces it. */
struct dpa_counters {
	pthread_mutex_t lock;
	uint64_t values; /* where the values go; 0: nobody has chosen yet */
	uint32_t count;
	uint32_t ids[DPA_COUNTERS];
};

/* What is wrong in device code: where it must not read or write, or where it has a number that
 * means nothing. */
struct dpa_wrong {
	uint64_t addr, bytes;
	bool write;
};

void dpa_counters_init(struct dpa_counters *c);
void dpa_counters_free(struct dpa_counters *c);
/* Chooses counters.  Both arrays belong to the program: they lie in its image or on its heap.
 * False: something is wrong, and nothing is chosen. */
bool dpa_counters_choose(struct dpa_process *p, uint64_t values, uint64_t ids, uint32_t count,
			 struct dpa_wrong *wrong) must_check;
/* Writes the present values. */
bool dpa_counters_sample(struct dpa_process *p, struct dpa_wrong *wrong) must_check;

/* ---- processes ---- */

/*
 * The region: image, a guard, heap, then stacks, each behind its own guard.  At the upper end of a
 * stack lie the thread's context and the arguments of its call, which device code reads.
 */
#define DPA_GUARD_BYTES (64u << 10)
#define DPA_STACK_BYTES (256u << 10)
#define DPA_SLOT_BYTES	(DPA_GUARD_BYTES + DPA_STACK_BYTES)
/* The heap of a process, and the most that SOFTHCA_DPA_HEAP_MIB may say. */
#define DPA_HEAP_MIB	 1024u
#define DPA_HEAP_MIB_MAX 65536u
/* Unused bytes behind each buffer, so that overruns are found (SOFTHCA_DPA_REDZONES). */
#define DPA_REDZONE_BYTES DPA_HEAP_GRANULE
/*
 * The stacks of signal handlers are not in the region, because device code must not reach them.
 * They are far from all others: valgrind tells a change of stacks from a growing stack by the
 * distance (2 MB), and would take the memory in between for fresh.
 */
#define DPA_SIGNAL_STACK_BYTES \
	(64u << 10) /* for all registers of a large processor, and our needs */
#define DPA_SIGNAL_SLOT_BYTES  (DPA_GUARD_BYTES + DPA_SIGNAL_STACK_BYTES)
#define DPA_SIGNAL_APART_BYTES (4u << 20)
/* Bytes of a stack that the door needs. */
#define DPA_DOOR_STACK_BYTES (32u << 10)

/* The upper end of a stack. */
struct dpa_stack_top {
	struct flexio_dev_thread_ctx ctx;
	uint8_t args[DPA_CALL_BYTES] __attribute__((aligned(16)));
};

/* What device code can activate by a number: part of an event handler. */
struct dpa_activated {
	struct dpa_activated *next;
	uint32_t id;
	void (*activate)(struct dpa_activated *a);
};

struct dpa_process {
	/* Each call writes this, and the fields behind the lock. */
	_Atomic(uint32_t) references;
	uint8_t apart[CACHELINE_BYTES];

	_Atomic(uint32_t) state; /* enum dpa_state */
	_Atomic(uint32_t) code;
	struct dpa_process_attr attr;
	struct dpa_image image;
	uint8_t *region;
	uint64_t region_bytes;
	uint8_t *stacks;
	uint8_t *signal_stacks;	     /* begin with the bytes that keep them apart */
	struct dpa_image_info *info; /* in the image: read when opened, then written */
	struct dpa_shown *shown;     /* what debuggers see; or NULL */
	uint64_t on_error;
	bool weak;	       /* each thread has a cache of window memory */
	struct dpa_race *race; /* NULL: nobody looks for data races */
	struct dpa_said said;

	pthread_mutex_t heap_lock;
	struct dpa_heap heap;
	uint8_t apart_too[CACHELINE_BYTES];

	/*
	 * Guards the list of threads, and which stacks are given out.  A thread in a run never
	 * takes it, because a thread that stops others waits for their runs with it.
	 */
	pthread_mutex_t lock;
	/* List of threads that answer calls and have nothing to do. */
	struct dpa_thread *idle;
	struct dpa_thread *threads;
	/* What device code can activate; its threads take this lock in a run. */
	struct spin activated_lock;
	struct dpa_activated *activated;
	uint64_t slots[DPA_THREADS / 64];
	uint64_t slots_ready[DPA_THREADS / 64]; /* slots whose memory is there */
	struct dpa_thread *crashed;		/* the first that failed */
	struct dpa_left crash; /* where it failed; the error handler runs on it, too */
	struct dpa_late_calls late;
	struct dpa_streams streams;
	struct dpa_counters counters;
	struct dpa_outboxes outboxes;
	struct dpa_window windows[DPA_WINDOWS];
};

/* The table behind the door; dpa/service.c. */
extern const struct dpa_door dpa_door_table;

/*
 * Tells whether device code may access it: it lies in the region and, if the heap has redzones, in
 * no gap of the heap.
 */
bool dpa_memory_allows(struct dpa_process *p, uint64_t addr, uint64_t bytes) must_check;

/* Finds the block of a heap with redzones that a refused access was meant for; 0 bytes: none. */
void dpa_memory_meant(struct dpa_process *p, uint64_t addr, uint64_t bytes,
		      struct dpa_heap_block *block);
void dpa_activated_link(struct dpa_process *p, struct dpa_activated *a);
/* On return nobody activates it any more. */
void dpa_activated_unlink(struct dpa_process *p, const struct dpa_activated *a);
/* Activates what has this number, if there is such a thing. */
void dpa_process_activate(struct dpa_process *p, uint32_t id);

struct dpa_stack_top *dpa_slot_top(const struct dpa_process *p, uint32_t slot);
/* Returns the lowest address of the stack. */
uint8_t *dpa_slot_stack(const struct dpa_process *p, uint32_t slot);
/* Returns the signal stack, which has DPA_SIGNAL_STACK_BYTES. */
uint8_t *dpa_slot_signal_stack(const struct dpa_process *p, uint32_t slot);

/* Makes a new thread of the process with that main and that number for device code; the lock is
 * held. */
int dpa_process_thread(struct dpa_process *p, uint32_t id, void *(*main)(struct dpa_thread *t),
		       void *user, struct dpa_thread **out) must_check;
/* Takes the thread out of device code, wherever it is there, and out of its main, which looks at
 * 'end'; then the thread is gone. */
void dpa_process_thread_end(struct dpa_process *p, struct dpa_thread *t);
/* Does to the process what follows from an outcome; the thread has left device code. */
void dpa_process_after(struct dpa_thread *t, enum dpa_outcome outcome);
