// SPDX-License-Identifier: BSD-2-Clause
/* See fence.h. */
#include "base/fence.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spin.h"

/* No processor keeps a store to itself for even a thousandth of this. */
#define FENCE_FAR_NS 100000u

_Atomic(bool) fence_symmetric = true;
_Atomic(bool) fence_far_ready;

static bool fence_ask(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

/* Runs before there are threads; a forked child inherits the registration. */
__attribute__((constructor)) static void fence_init(void)
{
	if (fence_ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		atomic_store(&fence_symmetric, false);
	fence_fork_child();
}

void fence_fork_child(void)
{
	atomic_store(&fence_far_ready, fence_ask(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED));
}

void fence_heavy(void)
{
	/* A program may forbid itself the call later on. */
	if (!atomic_load(&fence_symmetric) && !fence_ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		atomic_store(&fence_symmetric, true);
	atomic_thread_fence(memory_order_seq_cst);
}

void fence_far(void)
{
	int error = errno; /* may be the program's */

	if (!fence_ask(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) {
		uint64_t until = clock_ns() + FENCE_FAR_NS;

		while (clock_ns() < until)
			cpu_relax();
		errno = error;
	}
	atomic_thread_fence(memory_order_seq_cst);
}
