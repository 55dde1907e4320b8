/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Window memory as on a card, whose caches are not coherent with the host (SOFTHCA_DPA_MEMORY=weak).
 *
 * A thread has copies of the lines that it reads and writes through its windows.  What it stores is
 * in its copy alone until a fence writes it back; what it loads is what the line held when it was
 * read, until a fence invalidates the line.  The fences of the spaces MMIO and SYSTEM do that:
 * stores in front of one (W, ...) are written back, and loads behind it (..., R) read anew.
 *
 * Copies lie at addresses of their own: that of the host plus a distance which each window of each
 * thread has for itself.  flexio_dev_window_ptr_acquire() gives those, so code that is checked goes
 * to the copy, and the check before each access fills the copy in.
 *
 * What a fence is missing for is reported with its line: stores that an activation leaves in the
 * cache, or that are there for a second, or while the host gets an interrupt; and loads that give an
 * old value, if the line was read in an earlier activation, or for a second.  After the report the
 * line is written back or read, as a card does at some time, and the program goes on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dpa/trail.h"

struct dpa_process;
struct dpa_thread;
struct dpa_weak;

/* Tells whether the environment asks for it. */
bool dpa_weak_wanted(void);

/* The cache of a new thread; NULL: there is no memory. */
struct dpa_weak *dpa_weak_new(struct dpa_process *p) must_check;
void dpa_weak_free(struct dpa_weak *w);

/* Returns how far behind that address of the host the copy lies, for one of the windows. */
uint64_t dpa_weak_distance(const struct dpa_weak *w, uint32_t window, uint64_t host);
/* The other distance that addresses of the window may have. */
uint64_t dpa_weak_other_distance(uint64_t distance);

/* The thread is about to load or store there.  False: there is no memory for the copy. */
bool dpa_weak_access(struct dpa_weak *w, uint64_t copy, uint64_t distance, uint64_t bytes,
		     bool write, const struct dpa_trail *trail) must_check;
/* A fence of windows: __DPA_R and __DPA_W of what precedes it, and of what follows. */
void dpa_weak_fence(struct dpa_weak *w, uint32_t before, uint32_t behind);
/* The copies at these addresses are written back, and read anew. */
void dpa_weak_settle(struct dpa_weak *w, uint64_t copy, uint64_t bytes);
/* The host hears of something: whatever it is told has to be in its memory. */
void dpa_weak_tells(struct dpa_weak *w, const char *what);
/* The activation has ended; stopped: not by itself. */
void dpa_weak_end(struct dpa_weak *w, bool stopped);
/* Nothing is in the cache any more. */
void dpa_weak_forget(struct dpa_weak *w);
