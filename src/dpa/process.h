/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a DPA process, for the files of this folder. */
#pragma once

#include <pthread.h>

#include "base/spin.h"
#include "dpa/door.h"
#include "dpa/counters.h"
#include "dpa/dpa.h"
#include "dpa/heap.h"
#include "dpa/image.h"
#include "dpa/outbox.h"
#include "dpa/stream.h"
#include "dpa/thread.h"

/*
 * The region: image, a guard, heap, then stacks, each behind a guard of its own.  At the upper end
 * of a stack stand the thread's context and the arguments of its call, which device code reads.
 */
#define DPA_GUARD_BYTES (64u << 10)
#define DPA_HEAP_BYTES	(256ull << 20)
#define DPA_STACK_BYTES (256u << 10)
#define DPA_SLOT_BYTES	(DPA_GUARD_BYTES + DPA_STACK_BYTES)
/* Behind each buffer, where overruns are to be found (SOFTHCA_DPA_REDZONES). */
#define DPA_REDZONE_BYTES DPA_HEAP_GRANULE
/*
 * The stacks of signal handlers are no part of the region, as device code must not reach them.
 * They are far from all others: valgrind tells a change of stacks from a growing one by the
 * distance (2 MB), and would take what lies in between for fresh memory.
 */
#define DPA_SIGNAL_STACK_BYTES \
	(64u << 10) /* all registers of a large processor, and our own needs */
#define DPA_SIGNAL_SLOT_BYTES  (DPA_GUARD_BYTES + DPA_SIGNAL_STACK_BYTES)
#define DPA_SIGNAL_APART_BYTES (4u << 20)
/* What the door needs of a stack. */
#define DPA_DOOR_STACK_BYTES (32u << 10)

/* The upper end of a stack. */
struct dpa_stack_top {
	struct flexio_dev_thread_ctx ctx;
	uint8_t args[DPA_CALL_BYTES] __attribute__((aligned(16)));
};

struct dpa_process {
	/* Each call writes this, and what is behind the lock. */
	_Atomic(uint32_t) references;
	uint8_t apart[CACHELINE_BYTES];

	_Atomic(uint32_t) state; /* enum dpa_state */
	_Atomic(uint32_t) code;
	struct dpa_process_attr attr;
	struct dpa_image image;
	uint8_t *region;
	uint64_t region_bytes;
	uint8_t *stacks;
	uint8_t *signal_stacks;	     /* from the bytes that keep them apart on */
	struct dpa_image_info *info; /* in the image: written, never read */
	struct dpa_shown *shown;     /* to debuggers; or NULL */
	uint64_t on_error;

	pthread_mutex_t heap_lock;
	struct dpa_heap heap;
	uint8_t apart_too[CACHELINE_BYTES];

	/*
	 * Of the list of threads and the stacks that are given out.  Never taken by a thread that
	 * is in a run: whoever stops threads waits for their runs with it.
	 */
	pthread_mutex_t lock;
	/* Of those who answer calls and have nothing to do. */
	struct dpa_thread *idle;
	struct dpa_thread *threads;
	uint64_t slots[DPA_THREADS / 64];
	uint64_t slots_ready[DPA_THREADS / 64]; /* whose memory is there */
	struct dpa_thread *crashed;		/* the first that failed */
	struct dpa_left crash; /* as it failed; the error handler runs on it, too */
	struct dpa_streams streams;
	struct dpa_counters counters;
	struct dpa_outboxes outboxes;
	struct dpa_window windows[DPA_WINDOWS];
};

/* The table behind the door; dpa/service.c. */
extern const struct dpa_door dpa_door_table;

/* For the image that is open; -ENOMEM.  Closing undoes also what was begun. */
int dpa_region_open(struct dpa_process *p) must_check;
void dpa_region_close(struct dpa_process *p);
/* Where checked code need not ask at the door: the whole region, or without the heap if that has
 * redzones. */
uint64_t dpa_region_unasked(const struct dpa_process *p, uint64_t *bytes);
/* May device code access it?  In the region, and, if the heap has redzones, in no gap of it. */
bool dpa_memory_allows(struct dpa_process *p, uint64_t addr, uint64_t bytes) must_check;

/* The lock is held.  -EAGAIN: all stacks are taken. */
int dpa_slot_take(struct dpa_process *p, uint32_t *slot) must_check;
void dpa_slot_give(struct dpa_process *p, uint32_t slot);
struct dpa_stack_top *dpa_slot_top(const struct dpa_process *p, uint32_t slot);
/* The lowest address of the stack. */
uint8_t *dpa_slot_stack(const struct dpa_process *p, uint32_t slot);
/* Of DPA_SIGNAL_STACK_BYTES. */
uint8_t *dpa_slot_signal_stack(const struct dpa_process *p, uint32_t slot);

/* A new thread of the process with that main, for which device code has that number; the lock is
 * held. */
int dpa_process_thread(struct dpa_process *p, uint32_t id, void *(*main)(struct dpa_thread *t),
		       void *user, struct dpa_thread **out) must_check;
/* Out of device code, wherever it is there, and out of its main, which looks at end; then it is
 * gone. */
void dpa_process_thread_end(struct dpa_process *p, struct dpa_thread *t);
/* Device code prints; in the door. */
void dpa_message(struct dpa_thread *t, uint32_t stream, uint32_t level, const char *text,
		 uint32_t bytes);
void dpa_trace(struct dpa_thread *t, uint32_t stream, uint32_t level, uint32_t format_id,
	       const uint64_t args[DPA_TRACE_ARGS]);
void dpa_trace_send(struct dpa_thread *t, uint32_t stream, uint32_t records);
/* What follows from an outcome for the process: the thread has left device code. */
void dpa_process_after(struct dpa_thread *t, enum dpa_outcome outcome);
