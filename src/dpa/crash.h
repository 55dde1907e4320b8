/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of a process that has failed, or that runs: where its threads were. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dpa/heap.h"

#define DPA_FRAMES_MAX 32u /* of one thread */

struct dpa_left;
struct dpa_process;
struct dpa_thread;

struct dpa_frame {
	uint32_t thread; /* counted from 0, which failed first; of a late call: its number */
	uint32_t depth;
	bool late; /* it belongs to a call that was stopped because it took too long */
	uint64_t pc, sp, fp;
	uint64_t image;	  /* place in the image, or UINT64_MAX */
	const char *name; /* function's name, or NULL; lives as long as the process */
	uint64_t offset;  /* in the function */
};

struct dpa_crash {
	bool fault; /* a fault; else an error that the program reported, or none */
	uint32_t signum;
	bool write;
	uint64_t addr, bytes;	     /* of an access; bytes is 0 if nobody knows it */
	bool stack;		     /* the thread's stack has run out */
	struct dpa_heap_block block; /* what the access was meant for; 0 bytes: nobody knows */
};

/* Late calls that a process remembers, the last ones; each with this many frames. */
#define DPA_LATE_CALLS	8u
#define DPA_LATE_FRAMES 16u

struct dpa_late_calls {
	uint32_t count; /* of all late calls */
	uint32_t frames[DPA_LATE_CALLS];
	struct dpa_frame frame[DPA_LATE_CALLS][DPA_LATE_FRAMES];
};

/* Remembers where a late call was, whose thread has been stopped and has nothing else to do yet.
 * Returns its number, from 1; 0: nobody knows where it was. */
uint32_t dpa_crash_late(struct dpa_process *p, const struct dpa_thread *t);

/*
 * Tells where each thread was that has been stopped or has failed, and then each late call, with at
 * most 'room' frames.  Returns how many frames there are.  A process that runs has only late calls.
 */
uint32_t dpa_crash_read(struct dpa_process *p, struct dpa_crash *crash, struct dpa_frame *frames,
			uint32_t room);

/* ---- the core file ---- */

/* Writes a core file of a DPA process, for gdb beside the image: its memory, and its threads where
 * they were left. */

struct dpa_process;

/* Writes the core to the start of that file; 0 or a negative errno. */
int dpa_core_write(struct dpa_process *p, int fd) must_check;
