/* SPDX-License-Identifier: BSD-2-Clause */
/* The handler of faults that the driver installs in a program: faults of usermem are its own, any
 * other ends the test as it would end a program. */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#include "check.h"
#include "usermem/usermem.h"

/* Faults so far, in this source file's tests. */
static _Atomic(uint64_t) test_fault_count;

static inline void test_fault_handle(int signum, siginfo_t *info, void *ucontext)
{
	atomic_fetch_add(&test_fault_count, 1);
	if (!usermem_fault(ucontext, info->si_addr))
		signal(signum, SIG_DFL); /* it comes again */
}

static inline void test_fault_catch(void)
{
	struct sigaction act = {.sa_sigaction = test_fault_handle,
				.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

	CHECK(!sigaction(SIGSEGV, &act, NULL) && !sigaction(SIGBUS, &act, NULL));
}
