/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc says of other processes: its files, what a thread is doing, and what a process may
 * do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

/*
 * Reads files of /proc, also for a program that no longer sees /proc (chroot) or has no descriptor
 * left: for that, softhca keeps two descriptors that the program does not know of.
 */

/* Keep and drop the descriptors; the first keep opens them and the last drop closes them.  Without
 * room for them everything works as if nobody had called. */
void proc_file_keep(void);
void proc_file_drop(void);
/* Called in a forked child, which does not have the descriptors. */
void proc_file_fork_child(void);

/* Says what a thread of another process is doing, as /proc tells. */

enum task_state {
	TASK_GONE,    /* the thread has ended, or there never was one */
	TASK_STOPPED, /* a signal or a debugger has stopped it */
	/* It sleeps in another call than process_vm_readv and writev, or the freezer holds it. */
	TASK_ASLEEP,
	TASK_RUNS,    /* it runs or waits for a processor */
	TASK_IN_CALL, /* it sleeps in process_vm_readv or writev */
	TASK_UNKNOWN, /* it does not run, or /proc tells nothing */
};

/*
 * Looks at a thread of a process that began at the time 'began' (its bits under the mask).
 * TASK_STOPPED and TASK_ASLEEP are true of one moment; the thread may have gone on since.  With
 * TASK_RUNS, *ran_ms says how long the thread has run on a processor, mostly in steps of 10 ms.
 */
enum task_state task_look(pid_t pid, pid_t tid, uint64_t began, uint64_t mask, uint64_t *ran_ms);

/* True if the process runs, or could run if it had processors.  False: it has ended, a signal or a
 * debugger has stopped some thread of it, we cannot see it, or it has too many threads to look
 * at. */
bool task_goes_on(pid_t pid);

/* True if the thread runs or waits for a processor.  False also if /proc does not tell. */
bool task_is_runnable(pid_t pid, pid_t tid);

/* When the process began, in some unit; 0 if /proc does not tell. */
uint64_t task_began(pid_t pid);

/*
 * Says whether another process may do all that we may.  All processes of a fabric began as one
 * user's, but one may have given rights up since.  A program that has taken that one over would use
 * our rights: it names a file that it may not write itself, or runs a program of another user under
 * the process number that we write to.
 */

/* True if the process could trace us, as far as users, groups, capabilities and their namespace
 * say; then it gains nothing by us.  Opens files; false if we cannot read them. */
bool rights_cover_ours(pid_t pid) must_check;
