/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On which processor a thread runs.  Two threads that look for each other need one each.  Two
 * threads that take turns, of which one sleeps while the other works, run best on the same
 * processor, because waking another processor takes longer than a change of threads.
 *
 * To move a thread, this forbids it the other processors for a moment.  If the program changes the
 * thread's processors meanwhile, which is rare, the program's choice stays.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DPA_NOWHERE UINT32_MAX	      /* not known */
#define DPA_BETWEEN (UINT32_MAX - 1u) /* it is on the way to another */

/*
 * Returns the processor of the calling thread, which may change at the next moment.  DPA_NOWHERE:
 * see below.
 */
uint32_t dpa_place_here(void);
/*
 * Threads that the calling thread wakes find what it tells them while they look (dpa_stand_in).  So
 * it is no reason for them to leave a processor that it runs there.
 */
void dpa_place_does_not_matter(void);
/* Moves the calling thread away from that processor.  False: it must not run anywhere else. */
bool dpa_place_leave(uint32_t processor);
