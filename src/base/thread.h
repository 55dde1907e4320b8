/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our threads in the program's process.  The program's signals are for the program's threads, so
 * ours block them.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* The name of a thread of ours, which readers of /proc see. */
enum own_thread {
	OWN_THREAD_ENGINE,
	OWN_THREAD_CONTROL,
	OWN_THREAD_KEEPER,
	OWN_THREAD_FEEDER,
	OWN_THREAD_DPA,
	OWN_THREADS,
};

/* What a thread needs besides its function. */
struct own_thread_attr {
	enum own_thread name;
	size_t stack_bytes; /* without the thread-local storage of the program and its libraries */
	/* Faults stay unblocked: the thread touches memory that may no longer exist, and a blocked
	 * fault kills the process. */
	bool faults;
};

/* Makes the thread.  Returns 0, or negative errno if the system lacks something for it. */
int own_thread_start(pthread_t *thread, const struct own_thread_attr *attr, void *(*main)(void *),
		     void *arg) must_check;
/*
 * The calling thread asks for short slices, so that it may interrupt a thread with longer ones as
 * soon as it wakes (Linux 6.12, sched_setattr(2)).  Otherwise a program that spins on its memory
 * has the CPU to itself for milliseconds, although the thread that could end its wait is on that
 * CPU.  Elsewhere it makes no difference.
 */
void own_thread_short_slices(void);
