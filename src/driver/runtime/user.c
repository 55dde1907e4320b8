// SPDX-License-Identifier: BSD-2-Clause
/* See user.h. */
#include "driver/runtime/user.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "driver/runtime/fault.h"
#include "usermem/usermem.h"

/* Copies that answer a bad address with EFAULT where it would be a signal.  Our own handler of
 * faults finds the bad address, at no cost for a good one; where that handler is not installed, the
 * kernel finds it.  Where the kernel forbids that too, a bad address ends the program. */

static _Atomic(bool) guarded;

void user_guard(void)
{
	if (!atomic_load_explicit(&guarded, memory_order_relaxed) && !fault_install())
		atomic_store_explicit(&guarded, true, memory_order_relaxed);
}

bool user_is_guarded(void)
{
	return atomic_load_explicit(&guarded, memory_order_relaxed);
}

static int copy_verdict(ssize_t copied, size_t n, void *to, const void *from)
{
	if (copied == (ssize_t)n)
		return 0;
	if (copied >= 0 || errno == EFAULT)
		return -EFAULT;
	memcpy(to, from, n);
	return 0;
}

int user_load(void *to, const void *from, size_t n)
{
	struct iovec local = {to, n}, remote = {(void *)(uintptr_t)from, n};

	if (user_is_guarded())
		return usermem_read(to, from, n) ? 0 : -EFAULT;
	return copy_verdict(process_vm_readv(gettid(), &local, 1, &remote, 1, 0), n, to, from);
}

int user_store(void *to, const void *from, size_t n)
{
	struct iovec local = {(void *)(uintptr_t)from, n}, remote = {to, n};

	if (user_is_guarded())
		return usermem_copy(to, from, n) ? 0 : -EFAULT;
	return copy_verdict(process_vm_writev(gettid(), &local, 1, &remote, 1, 0), n, to, from);
}
