/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On which processor a thread runs.  Two threads that look for each other need one each; of two
 * that take turns, of which one sleeps while the other works, both are best on the same, as to wake
 * another processor takes longer than a change of threads.
 *
 * A thread is moved by forbidding it the other processors for a moment.  What the program has
 * allowed it meanwhile, and that is rare, stays as it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DPA_NOWHERE UINT32_MAX	      /* not known */
#define DPA_BETWEEN (UINT32_MAX - 1u) /* on the way to another */

/* Of the calling thread; at the next moment it may be another.  DPA_NOWHERE: see below. */
uint32_t dpa_place_here(void);
/*
 * The calling thread wakes others for what they find themselves while they look (dpa_stand_in): that they are on
 * its processor is no reason for them to leave that to it.
 */
void dpa_place_does_not_matter(void);
/* The calling thread runs on, but not there.  False: it must not run anywhere else. */
bool dpa_place_leave(uint32_t processor);
