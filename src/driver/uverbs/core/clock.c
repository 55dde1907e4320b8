// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs/core/file.h. */
#include "driver/uverbs/core/file.h"

#include <rdma/mlx5-abi.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/endian.h"
#include "prm/model.h"

/* How often readers should look at the conversion again; it does not drift, so this is long. */
#define CLOCK_INFO_PERIOD_NS 10000000000ull
#define SCALE_SHIFT	     20u

uint32_t uclock_khz(const struct ufile *f)
{
	return model_at(f->process->registry->model)->clock_khz;
}

static void store_u32(__u32 *at, uint32_t v, memory_order order)
{
	atomic_store_explicit((_Atomic(uint32_t) *)at, v, order);
}

static void store_u64(void *at, uint64_t v)
{
	atomic_store_explicit((_Atomic(uint64_t) *)at, v, memory_order_relaxed);
}

/*
 * Readers take the fields between two looks at 'sign': both must give the same even value, or they
 * try again.  The writer keeps it odd from before the first store of a field (the fence) until
 * after the last (release).
 */
static void clock_info_refresh(struct mlx5_ib_clock_info *info, uint64_t cycles, uint32_t khz)
{
	uint32_t shift, sign = info->sign | MLX5_IB_CLOCK_INFO_KERNEL_UPDATING;

	store_u32(&info->sign, sign, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	store_u64(&info->nsec, clock_realtime_ns());
	store_u64(&info->cycles, cycles);
	store_u64(&info->frac, 0);
	/*
	 * Cycles that are nanoseconds need no scaling, and nothing overflows.  Others are multiplied
	 * with a rounded factor: the error is below 0.1 us per second since the refresh, and the
	 * product has room for hours.
	 */
	shift = khz == CLOCK_NS_KHZ ? 0 : SCALE_SHIFT;
	store_u32(&info->mult, (uint32_t)((((uint64_t)CLOCK_NS_KHZ << shift) + khz / 2) / khz),
		  memory_order_relaxed);
	store_u32(&info->shift, shift, memory_order_relaxed);
	store_u64(&info->mask, UINT64_MAX);
	store_u64(&info->overflow_period, CLOCK_INFO_PERIOD_NS);
	store_u32(&info->sign, sign + 1, memory_order_release);
}

void uclock_refresh(struct ufile *f)
{
	uint32_t khz = uclock_khz(f);
	uint64_t cycles;

	/* A thread that finds it taken may go on: the other one is storing the present time. */
	if (!spin_try(&f->clock_busy))
		return;
	cycles = clock_ticks(clock_ns(), khz);
	/* one store, because the library reads it as two halves and looks for a carry */
	store_u64(f->pages + UCLOCK_PAGE_OFFSET, be64_of(cycles).raw);
	clock_info_refresh((struct mlx5_ib_clock_info *)(f->pages + UCLOCK_INFO_OFFSET), cycles,
			   khz);
	spin_unlock(&f->clock_busy);
}
