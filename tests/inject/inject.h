/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fault injector tells and what a program under it may ask for.
 *
 * The injector is a preload library.  It counts the calls that one object file of the process (the
 * device's library, or the daemon's program) makes of functions that may fail for want of memory,
 * descriptors or processes, and makes some of them fail:
 *
 *   INJECT_INTO    a part of the object file's name
 *   INJECT_FIRST   the number of the first call that fails, from 1; 0: none
 *   INJECT_LAST    the number of the last one; 0: all that follow
 *   INJECT_ONLY    the one function that counts; all, if it is not set
 *   INJECT_REPORT  a file of the size of struct inject_report, which stays up to date whatever
 *                  becomes of the process
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INJECT_NAME_BYTES 24

struct inject_report {
	_Atomic(uint64_t) calls;  /* counted */
	_Atomic(uint64_t) failed; /* of these */
	_Atomic(uint32_t) hold;	  /* set from outside: nothing is counted */
	uint32_t unused;
	uint64_t offset; /* of the first one that failed: where in the object file it is */
	char name[INJECT_NAME_BYTES]; /* and the function */
};

/* Weak in the program: without the injector they are not there. */
void inject_hold(bool on);
/* Pieces of memory that the object file has allocated and nobody has freed. */
size_t inject_live(void);
/* Says on standard error where they were allocated. */
void inject_live_print(void);
