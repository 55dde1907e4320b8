/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DPA of a device: processes that run device code.  The driver's objects of queues, windows,
 * streams and outboxes include the headers of those names as well; the others say how it works inside.
 *
 * Device code is native and runs on threads of the application's process, one for each DPA thread,
 * on separate stacks.  Image, heap and stacks of a DPA process lie in one range of addresses, its
 * region.  When code faults, or is stopped in a loop, the runtime leaves it by switching back to
 * its own stack, so the application goes on.  Code that is compiled without checks can write the
 * application's memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/cmd_dpa.h"

struct dpa_process;
struct dpa_streams;
struct dpa_thread;

/* The status of a process that ended without an error. */
#define DPA_CODE_FINISHED 0x40u

/*
 * Returns the next number of a thread, from 1, which device code asks for; no two threads of a
 * program have the same.
 */
uint32_t dpa_thread_number(void);

/*
 * How a thread that waits for an event makes the device work meanwhile, as a program that polls
 * does: so what others send comes to the handler on the handler's thread.
 */
struct dpa_stand_in {
	/* Tells whether the thread is to do it, because nobody else does.  *polls belongs to the
	 * thread, 0 at first. */
	bool (*wanted)(uint32_t *polls);
	/* Makes the device work.  True if there was something to do. */
	bool (*poll)(uint32_t *polls);
	/* Says that nobody may count on the thread any more. */
	void (*leave)(void);
};

struct dpa_process_attr {
	void *elf; /* from malloc; the process frees it, unless its creation failed */
	size_t elf_bytes;
	/* Called once, when the process has failed, on a thread of the process. */
	void (*failed)(void *user);
	/* Gives what a port (0: the first) has received or sent; false: there is no such port. */
	bool (*port_bytes)(void *user, uint32_t port, bool received, uint64_t *bytes);
	/* May be missing.  Device code rings for a flow of congestion control, or asks where the
	 * table of a function is; 0: there is none. */
	void (*congestion)(void *user, uint32_t flow, uint32_t rate, bool probe,
			   uint32_t next_action);
	uint64_t (*congestion_table)(void *user, uint32_t function);
	const struct dpa_stand_in *stand_in; /* may be missing */
	void *user;
};

/*
 * Makes a process with one reference.  0 or a negative errno; -EINVAL has logged what is wrong with
 * the image.
 */
int dpa_process_create(const struct dpa_process_attr *attr, struct dpa_process **out) must_check;
/* None of its code runs any more, as if one of its threads had said that the process is finished;
 * all else stays. */
void dpa_process_finish(struct dpa_process *p);
/* Ends all of its threads, whatever they do, and waits for that; calls in progress fail. */
void dpa_process_end(struct dpa_process *p);
/* A reference keeps the memory of an ended process. */
void dpa_process_hold(struct dpa_process *p);
void dpa_process_put(struct dpa_process *p);

enum dpa_state dpa_process_state(const struct dpa_process *p);
/* Returns why it is in that state: dpa_process_status of the manual. */
uint32_t dpa_process_code(const struct dpa_process *p);
/* Returns the address of a function of the image; 0: there is none. */
uint64_t dpa_process_function(const struct dpa_process *p, const char *name);
/* Tells whether code of the image lies at that address. */
bool dpa_process_has_code(const struct dpa_process *p, uint64_t addr);
/* Chooses the function that runs in the device after a failure.  -EBUSY: threads exist;
 * -ESHUTDOWN: the process has ended. */
int dpa_process_on_error(struct dpa_process *p, uint64_t function) must_check;

/* ---- memory ---- */

struct dpa_heap_info {
	uint64_t base, bytes, requested, allocated;
};

void dpa_memory_info(struct dpa_process *p, struct dpa_heap_info *info);
/* Returns the address of a new block; 0: there is no room.  by: the address in the program that
 * reports are to name, or 0. */
uint64_t dpa_memory_alloc(struct dpa_process *p, uint64_t bytes, uint64_t by);
/* False: no block begins there. */
bool dpa_memory_free(struct dpa_process *p, uint64_t addr, uint64_t by) must_check;
/* Tells whether all of it lies in one block. */
bool dpa_memory_has(struct dpa_process *p, uint64_t addr, uint64_t bytes) must_check;
/*
 * Memory that the host is about to write, as a card judges it: a card knows the heap of a process,
 * and not its blocks.
 */
struct dpa_overrun {
	bool found; /* it lies not in one block of the heap, and this is new of the block */
	uint64_t block, bytes; /* block in which it begins; 0 bytes: none */
};

/* Tells whether all of it lies in the heap, or in variables of the image. */
bool dpa_memory_writable(struct dpa_process *p, uint64_t addr, uint64_t bytes,
			 struct dpa_overrun *overrun) must_check;
/* Returns the memory if all of it lies in the heap, whether it is given out or not; else NULL. */
void *dpa_memory_part(const struct dpa_process *p, uint64_t addr, uint64_t bytes);

/* ---- calls ---- */

struct dpa_call {
	uint64_t function;
	uint64_t unpack; /* 0: function gets the only argument unchanged */
	const void *args;
	uint32_t bytes;
};

/* Runs a function in the device and waits for it; any thread may.  *value is its result, or of a
 * call that was stopped the number that its frames have (dpa/crash.h). */
enum dpa_call_end dpa_call(struct dpa_process *p, const struct dpa_call *call, uint64_t *value);

/* ---- messages ---- */

/* The streams of the process, which live as long as it does; dpa/stream.h. */
struct dpa_streams *dpa_process_streams(struct dpa_process *p);

/* ---- signals ---- */

/*
 * For the handlers of SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP.  True: the signal was for the
 * DPA, and the handler returns.  A fault of device code, or a stop that finds it there, does not
 * return.
 */
bool dpa_signal(int signum, const void *info, void *ucontext);
