/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of a DPA process: a thread of this process that enters device code and leaves it again,
 * however that ends.
 *
 * The thread has a stack for the runtime, and one in the region for device code.  dpa_thread_run
 * switches to the second; device code comes back by a return, through the door, by a fault, or
 * because somebody stops it.  in_device says on which side of the door the thread is, so nobody
 * takes a fault in the runtime for one of device code.  A thread is stopped only at an instruction
 * of the image, because the runtime may hold locks.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <ucontext.h>

#include "dpa/door.h"
#include "dpa/dpa.h"
#include "dpa/heap.h"
#include "dpa/outbox.h"
#include "base/adaptive_spin.h"
#include "dpa/trail.h"
#include "dpa/window.h"

/* How device code was left. */
enum dpa_outcome {
	DPA_OUT_RETURNED,
	DPA_OUT_RESCHEDULED,
	DPA_OUT_RETRIGGERED,
	DPA_OUT_FINISHED,
	DPA_OUT_PROCESS_FINISHED,
	DPA_OUT_FAULT,
	DPA_OUT_ERROR, /* value: the code that it reported */
	DPA_OUT_STOPPED,
	DPA_OUT_DEAD, /* it did not begin: the process has ended */
};

/* Where device code was when it had to leave. */
struct dpa_registers {
	bool known;
	bool returns; /* pc is the place to which a call returns */
	uint64_t pc, sp, fp;
	mcontext_t all;
};

struct dpa_fault {
	int signum; /* 0: the checks refused an access */
	uint64_t addr;
	uint64_t bytes; /* bytes of the refused access */
	bool write;
	bool stack;		     /* the thread's stack has run out */
	struct dpa_heap_block block; /* what a refused access was meant for; 0 bytes: no block */
};

/* How and where a thread left device code. */
struct dpa_left {
	enum dpa_outcome outcome;
	struct dpa_registers registers;
	struct dpa_fault fault;
	uint32_t slot; /* number of its stack then */
};

/* A call as its answerer finds it: one cache line has all that a short call needs. */
#define DPA_ASK_BYTES 32u
struct dpa_ask {
	_Atomic(uint32_t) count; /* counts the calls so far */
	uint32_t bytes;
	struct dpa_calling *calling;
	uint64_t function, unpack;
	uint8_t args[DPA_ASK_BYTES]; /* if they fit */
} cacheline_aligned;

/* The parts lie apart by who writes them, because two processors work on them. */
struct dpa_thread {
	struct dpa_process *process;
	struct dpa_thread *next; /* list of the process's threads */
	void *(*main)(struct dpa_thread *t);
	void *user; /* belongs to main */
	/* What device code in yield does meanwhile, on this side of the door; NULL: nothing. */
	void (*yield)(struct dpa_thread *t, bool retrigger);
	pthread_t pthread;
	uint32_t slot;	    /* number of the stack */
	uint32_t id;	    /* number that device code has for it */
	_Atomic(pid_t) tid; /* 0: it has not started yet */

	/* written by the thread itself */
	struct dpa_uar uar cacheline_aligned; /* the UAR that its bells come from */
	void *runtime_sp;
	uint64_t entry; /* the function of the program that it runs */
	volatile bool in_device;
	_Atomic(uint32_t) running; /* a futex: between begin and end of dpa_thread_run */
	struct adaptive_spin spin;
	const struct dpa_stand_in *stand_in; /* while it waits it makes the device work; or NULL */
	uint32_t stand_in_polls;
	bool relied_on;		/* it makes the device work, and has not said that it stops */
	uint8_t polls_at_bells; /* how many are still worth it */
	struct dpa_window_slot window[DPA_WINDOW_SLOTS];
	struct dpa_weak *weak; /* cache of window memory; NULL: it is coherent */
	struct dpa_reservation reservation;

	/* outcome of the last run */
	enum dpa_outcome outcome;
	uint64_t value;
	struct dpa_registers registers;
	struct dpa_fault fault;

	/* the wait of its main, and what others want of it */
	_Atomic(uint32_t) word cacheline_aligned; /* a futex: counts what may have ended the wait */
	_Atomic(uint32_t) asleep; /* asleep, or about to be: it looks once more after it says so */
	_Atomic(uint64_t) roused_ns;
	_Atomic(uint32_t) partner; /* processor of the thread that woke it */
	_Atomic(uint32_t) place;   /* its own processor, while it waits */
	_Atomic(uint32_t) stop;
	_Atomic(uint32_t) end; /* the thread is to return */

	/* for an answerer of calls (dpa/call.c): callers write it */
	struct dpa_ask ask;
	struct dpa_thread *idle cacheline_aligned;
	struct adaptive_spin callers;
};

/* Returns the calling thread, if it is one of a DPA process. */
struct dpa_thread *dpa_thread_self(void);

/* The process's lock of threads is held.  0 or negative errno. */
int dpa_thread_start(struct dpa_thread *t) must_check;
/*
 * Runs device code at that address with two arguments.  last: runs it also in a process that has
 * failed, unless somebody destroys the process.
 */
enum dpa_outcome dpa_thread_run(struct dpa_thread *t, uint64_t function, uint64_t a, uint64_t b,
				bool last);
/* Does the first half of dpa_thread_stop, which does not wait. */
void dpa_thread_tell_stop(struct dpa_thread *t);
/* Takes the thread out of device code now; the calling thread is not t.  t does not begin again
 * before stop is 0. */
void dpa_thread_stop(struct dpa_thread *t);
/* The calling thread is t: waits until over(arg) holds; the thread that makes it hold wakes t. */
void dpa_thread_await(struct dpa_thread *t, bool (*over)(const void *arg), const void *arg);
void dpa_thread_wake(struct dpa_thread *t);
/* The thread has rung: looks for what has come meanwhile, which its function may wait for. */
void dpa_thread_rang(struct dpa_thread *t);
/*
 * The same in two steps, so that the second needs no lock.  True: the thread sleeps, and the caller
 * has to call futex_wake_all for its word.
 */
bool dpa_thread_rouse(struct dpa_thread *t) must_check;

/* ---- for the door: the calling thread is in device code ---- */

/* Leave device code, so that the runtime may do as it likes, and go back. */
struct dpa_thread *dpa_door_enter(void);
void dpa_door_leave(struct dpa_thread *t);
/* Follows the frames from that frame, which is of a function of the door. */
struct dpa_trail dpa_trail_from(const struct dpa_thread *t, const uint64_t *frame);
/* Never returns to device code; the thread has entered the runtime. */
_Noreturn void dpa_thread_leave(struct dpa_thread *t, enum dpa_outcome outcome, uint64_t value);
