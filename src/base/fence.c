// SPDX-License-Identifier: BSD-2-Clause
/* See fence.h. */
#include "base/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic(bool) fence_symmetric = true;

static bool fence_ask(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

/* Runs before there are threads; a forked child inherits the registration. */
__attribute__((constructor)) static void fence_init(void)
{
	if (fence_ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		atomic_store(&fence_symmetric, false);
}

void fence_heavy(void)
{
	/* A program may forbid itself the call later on. */
	if (!atomic_load(&fence_symmetric) && !fence_ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		atomic_store(&fence_symmetric, true);
	atomic_thread_fence(memory_order_seq_cst);
}
