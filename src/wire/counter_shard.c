// SPDX-License-Identifier: BSD-2-Clause
#include "wire/counter_shard.h"

#include <pthread.h>

_Thread_local unsigned shard_plus_1;

/* Bit n: shard n is taken.  Shard 0 belongs to everybody. */
static _Atomic(uint32_t) taken = 1;
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

static_assert(SLOT_THREAD_SHARDS <= 32, "one word of bits");

static void shard_give(void *shard)
{
	shard_plus_1 = 0;
	atomic_fetch_and(&taken, ~(1u << (uintptr_t)shard));
}

static void make_key(void)
{
	have_key = pthread_key_create(&at_thread_end, shard_give) == 0;
}

unsigned shard_take(void)
{
	uint32_t now = atomic_load(&taken);
	unsigned shard = 0;

	pthread_once(&once, make_key);
	while (have_key && now != (1ull << SLOT_THREAD_SHARDS) - 1) {
		unsigned free = (unsigned)__builtin_ctz(~now);

		if (atomic_compare_exchange_weak(&taken, &now, now | 1u << free)) {
			shard = free;
			break;
		}
	}
	/* without this value the end of the thread cannot give the shard back */
	if (shard && pthread_setspecific(at_thread_end, (void *)(uintptr_t)shard)) {
		atomic_fetch_and(&taken, ~(1u << shard));
		shard = 0;
	}
	shard_plus_1 = shard + 1;
	return shard;
}
