// SPDX-License-Identifier: BSD-2-Clause
/* Device code of threads_host.c: what threads do to each other in one memory. */
#include <libflexio-dev/flexio_dev.h>
#include <dpaintrin.h>
#include <stddef.h>

#include "threads.h"

/* Prevents "missing prototype" warnings. */
uint64_t locked(uint64_t shared_daddr, uint64_t rounds);
uint64_t lock_taken(uint64_t shared_daddr);
uint64_t counted(uint64_t shared_daddr, uint64_t rounds);
uint64_t produce(uint64_t shared_daddr, uint64_t rounds);
uint64_t consume(uint64_t shared_daddr, uint64_t rounds);

__dpa_rpc__ uint64_t locked(uint64_t shared_daddr, uint64_t rounds)
{
	struct shared *s = (struct shared *)shared_daddr;

	for (uint64_t i = 0; i < rounds; i++) {
		if (i % 8 == 0) {
			while (spin_trylock(&s->lock))
				;
		} else {
			spin_lock(&s->lock);
		}
		/* Not atomic: only the lock keeps them together. */
		s->first = s->first + 1;
		s->second = s->second + 1;
		if (s->first != s->second)
			s->torn = 1;
		spin_unlock(&s->lock);
	}
	return 0;
}

/* The results of trylock: free, taken by us, free again. */
__dpa_rpc__ uint64_t lock_taken(uint64_t shared_daddr)
{
	struct shared *s = (struct shared *)shared_daddr;
	uint64_t results;

	spin_init(&s->lock);
	results = spin_trylock(&s->lock) != 0;
	results = results << 1 | (spin_trylock(&s->lock) != 0);
	spin_unlock(&s->lock);
	results = results << 1 | (spin_trylock(&s->lock) != 0);
	spin_unlock(&s->lock);
	return results;
}

__dpa_rpc__ uint64_t counted(uint64_t shared_daddr, uint64_t rounds)
{
	struct shared *s = (struct shared *)shared_daddr;
	uint64_t mine = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		uint32_t old32 = __atomic_load_n(&s->swapped32, __ATOMIC_RELAXED);
		uint64_t old64 = __atomic_load_n(&s->swapped64, __ATOMIC_RELAXED);

		__atomic_fetch_add(&s->added32, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&s->added64, 3, __ATOMIC_SEQ_CST);
		while (!__atomic_compare_exchange_n(&s->swapped32, &old32, old32 + 1, 0,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		while (!__atomic_compare_exchange_n(&s->swapped64, &old64, old64 + 1, 0,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		/* One token goes round: whoever takes it puts it back. */
		if (__atomic_exchange_n(&s->token, 0, __ATOMIC_SEQ_CST)) {
			mine++;
			if (__atomic_exchange_n(&s->token, 1, __ATOMIC_SEQ_CST))
				s->torn = 1;
		}
	}
	return mine;
}

/* Only the flag is volatile: the compiler would move the data across it, but for the fences. */
__dpa_rpc__ uint64_t produce(uint64_t shared_daddr, uint64_t rounds)
{
	struct shared *s = (struct shared *)shared_daddr;

	for (uint64_t i = 1; i <= rounds; i++) {
		s->data[0] = i;
		s->data[1] = i;
		__dpa_thread_memory_writeback();
		*(volatile uint64_t *)&s->flag = i;
	}
	return 0;
}

/* How often data was older than the flag that promised it. */
__dpa_rpc__ uint64_t consume(uint64_t shared_daddr, uint64_t rounds)
{
	struct shared *s = (struct shared *)shared_daddr;
	uint64_t wrong = 0, flag;

	do {
		flag = *(volatile uint64_t *)&s->flag;
		__dpa_thread_memory_fence(__DPA_R, __DPA_R);
		wrong += s->data[0] < flag;
		wrong += s->data[1] < flag;
	} while (flag < rounds);
	return wrong;
}

uint64_t load32(uint64_t daddr);
__dpa_rpc__ uint64_t load32(uint64_t daddr)
{
	return __atomic_load_n((const uint32_t *)daddr, __ATOMIC_SEQ_CST);
}

uint64_t load64(uint64_t daddr);
__dpa_rpc__ uint64_t load64(uint64_t daddr)
{
	return __atomic_load_n((const uint64_t *)daddr, __ATOMIC_SEQ_CST);
}
