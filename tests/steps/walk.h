/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child process that its parent takes through a call instruction by instruction (ptrace).  Only
 * the thread that makes the call is traced; the others of the process run as ever.
 *
 *     child:  walk_begin(); the call; walk_end();
 *     parent: walk_start(); walk_to() ...; walk_finish() or SIGKILL
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum walk_style {
	/* Every instruction.  A restartable sequence (rseq) never ends so: each stop aborts it. */
	WALK_INTO,
	/* Restartable sequences at full speed, with a stop where they make a system call, before
	 * and after it, and one behind their end. */
	WALK_OVER,
};

struct walk {
	pid_t pid;
	enum walk_style style;
	uint64_t rseq; /* where the child's struct rseq lies; 0: none */
	uint64_t rip;
	uint64_t points;   /* stops so far, repetitions of one instruction not counted */
	uint64_t repeated; /* of the instruction at rip */
	unsigned sequences;
	unsigned calls; /* system calls in sequences */
	bool in_call;	/* stopped at the entry of a system call */
	bool ended;	/* the call has returned */
};

/* ---- the child ---- */

/* Stops until the parent goes on; the parent traces from here to walk_end. */
void walk_begin(void);
void walk_end(void);

/* ---- the parent; whatever goes wrong ends the program ---- */

/* From now on no wait for a child is for ever: system calls that wait end with EINTR each second. */
void walk_ticks(void);
/* Waits until the child has stopped or ended, for a minute at most.  False: it has not, and what its
 * threads wait for is printed. */
bool walk_wait(pid_t pid, int *status) __attribute__((warn_unused_result));

/* True if a process stops where a debug register says.  WALK_OVER needs it. */
bool walk_can_break(void);

/* Waits for the child in walk_begin. */
void walk_start(struct walk *w, pid_t pid, enum walk_style style);
/* Goes on until points is at or the call has returned. */
void walk_to(struct walk *w, uint64_t at);
/* At full speed to the end of the call, then lets the child go. */
void walk_finish(struct walk *w);
/* File and offset that the child stands at, for addr2line. */
void walk_place(const struct walk *w, char *text, size_t size);
/* The same of a thread that is not traced; the process may hang. */
void walk_place_of(pid_t pid, char *text, size_t size);
