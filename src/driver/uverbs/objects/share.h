/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions whose memory peers may reach by themselves (driver/runtime/share.h). */
#pragma once

#include "driver/uverbs/core/file.h"

struct umr;

/* Decides how peers reach the region, if it has remote rights, and tells the device. */
void ushare_region(const struct ufile *f, struct umr *mr);
/* Before the region's key changes or goes: nobody else withdraws it any more. */
void ushare_end(struct umr *mr);

/*
 * Around the beginning of the program's serving faults of memory (userfaultfd).  Peers reach
 * regions there by packets only, from before it begins: nobody who waits for a fault holds up
 * the withdrawal.
 */
void ushare_serving_begin(uint64_t addr, uint64_t bytes);
void ushare_serving_end(void);

/*
 * The program takes pages from these addresses, or has done so.  Peers that have them mapped, too,
 * would reach what the program does not any more; they use packets from now on, which find what is
 * there, or nothing.
 */
void ushare_unmapping(uint64_t addr, uint64_t bytes);

/* Around fork(2). */
void ushare_fork_lock(void);
void ushare_fork_unlock(void);
