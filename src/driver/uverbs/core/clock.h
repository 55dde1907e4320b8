/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's clock: the system's monotonic clock, so that time stamps of different processes
 * compare, in ticks of the frequency that the model's card has.
 *
 * Two pages of the command descriptor show it (mlx5-abi.h): the counter itself, big-endian, and
 * what is needed to convert time stamps into wall-clock time.  Memory does not tick, so the counter
 * is as old as the last uclock_refresh: the hook of ibv_query_rt_values_ex calls it right before
 * the library reads.  The conversion holds until somebody sets the wall clock; control calls renew
 * it.
 */
#pragma once

#include <stdint.h>

#define UCLOCK_PAGE_OFFSET ((uint64_t)0x500 * UVERBS_PAGE) /* MLX5_IB_MMAP_CORE_CLOCK */
#define UCLOCK_INFO_OFFSET ((uint64_t)0x700 * UVERBS_PAGE) /* MLX5_IB_MMAP_CLOCK_INFO, V1 */

struct ufile;

uint32_t uclock_khz(const struct ufile *f);
void uclock_refresh(struct ufile *f);
