/* SPDX-License-Identifier: BSD-2-Clause */
/* What a thread of another process is doing, as /proc tells. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum task_state {
	TASK_GONE,    /* it has ended, or there never was one */
	TASK_STOPPED, /* by a signal or a debugger */
	TASK_ASLEEP,  /* in another call than process_vm_readv and writev, or by the freezer */
	TASK_RUNS,    /* or waits for a processor */
	TASK_IN_CALL, /* asleep in process_vm_readv or writev */
	TASK_UNKNOWN, /* it does not run, or /proc tells nothing */
};

/*
 * Looks at a thread of a process that began at the time 'began' (its bits under the mask).
 * TASK_STOPPED and TASK_ASLEEP are true of one moment; the thread may have gone on since.
 * *ran_ms, with TASK_RUNS: how long it has run on a processor, in steps of 10 ms mostly.
 */
enum task_state task_look(pid_t pid, pid_t tid, uint64_t began, uint64_t mask, uint64_t *ran_ms);

/* Does the process run, or could it if it had processors?  False: it has ended, some thread of it
 * is stopped by a signal or a debugger, or it is out of our sight; or it has too many threads to
 * look at. */
bool task_goes_on(pid_t pid);

/* Does the thread run, or wait for a processor?  False also if /proc does not tell. */
bool task_is_runnable(pid_t pid, pid_t tid);
/* The same of another thread of the caller's process, for callers who may have interrupted anything. */
bool task_beside_is_runnable(pid_t tid);

/* When a process began, in some unit; 0 if /proc does not tell. */
uint64_t task_began(pid_t pid);
