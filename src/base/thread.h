/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of ours in the program's process.  The program's signals are for the program's threads:
 * ours block them.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* A name says whose a thread is, to own_thread_is and to a reader of /proc. */
enum own_thread {
	OWN_THREAD_ENGINE,
	OWN_THREAD_CONTROL,
	OWN_THREAD_KEEPER,
	OWN_THREAD_FEEDER,
	OWN_THREAD_DPA, /* runs code of the program, so own_thread_is says no */
	OWN_THREADS,
};

/* What one needs besides its function. */
struct own_thread_attr {
	enum own_thread name;
	/* The program's static TLS takes its room from the stack too. */
	size_t stack_bytes;
	/* Faults stay open: the thread touches memory that may have gone, and a blocked fault kills
	 * the process. */
	bool faults;
};

/* Makes the thread; 0, or negative errno of what there is not enough of. */
int own_thread_start(pthread_t *thread, const struct own_thread_attr *attr, void *(*main)(void *),
		     void *arg) must_check;
/*
 * The calling thread asks for short slices: so it may interrupt one with longer ones as soon as it wakes (Linux
 * 6.12, sched_setattr(2)); otherwise a program that spins on its memory has the CPU to itself for milliseconds,
 * while what it waits for is here.  Elsewhere it makes no difference.
 */
void own_thread_short_slices(void);
/* Is a thread of that name (comm, without the newline) one of ours?  Threads inherit the name of
 * their creator, so a part of a name says nothing. */
bool own_thread_is(const char *comm);
