/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions whose memory peers may reach without us (exposure/expose.h).  Memory that the program has
 * mapped shared from a file (driver/runtime/shared_file.h) is opened to peers as that file; other
 * memory they reach by the kernel.
 */
#pragma once

#include "driver/uverbs/core/file.h"

struct umr;

/* Decides how peers reach the region, if it has remote rights, and tells the device. */
void ushare_region(const struct ufile *f, struct umr *mr);
/* Called before the region's key changes or goes: nobody else withdraws it afterwards. */
void ushare_end(struct umr *mr);
/* Called when no peer reaches the memory by the region's key any more. */
void ushare_release(struct umr *mr);

/*
 * The driver calls these around the moment at which the program begins to serve faults of memory
 * (userfaultfd).  Peers reach regions there by packets only, from before that moment, so that
 * nobody who waits for a fault holds up the withdrawal.
 */
void ushare_serving_begin(uint64_t addr, uint64_t bytes);
void ushare_serving_end(void);

/*
 * The program takes pages from these addresses, or has done so.  Peers that have mapped the same
 * pages would reach what the program no longer does, so they use packets from now on: these find
 * what is there, or nothing.
 */
void ushare_unmapping(uint64_t addr, uint64_t bytes);

/* The driver calls these around fork(2). */
void ushare_fork_lock(void);
void ushare_fork_unlock(void);
