/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of a process that has failed, or that runs: where its threads were. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define DPA_FRAMES_MAX 32u /* of one thread */

struct dpa_left;
struct dpa_process;
struct dpa_thread;

struct dpa_frame {
	uint32_t thread; /* counted from 0, which failed first */
	uint32_t depth;
	uint64_t pc, sp, fp;
	uint64_t image;	  /* place in the image, or UINT64_MAX */
	const char *name; /* function's name, or NULL; lives as long as the process */
	uint64_t offset;  /* in the function */
};

struct dpa_crash {
	bool fault; /* a fault; else an error that the program reported, or none */
	uint32_t signum;
	bool write;
	uint64_t addr, bytes; /* of an access; bytes is 0 if nobody knows it */
};

/*
 * Gives where a thread was when it failed or was stopped; false: it did neither, or runs.  The
 * process's lock is held.
 */
bool dpa_crash_left(const struct dpa_thread *t, struct dpa_left *left);
/*
 * Tells where each thread was that has been stopped or has failed, with at most 'most' frames.
 * Returns how many frames there are.  A process that runs has none.
 */
uint32_t dpa_crash_read(struct dpa_process *p, struct dpa_crash *crash, struct dpa_frame *frames,
			uint32_t room);
