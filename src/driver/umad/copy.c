// SPDX-License-Identifier: BSD-2-Clause
/* Copies by the kernel, which answers a bad address with EFAULT where a store would be a signal.  Where
 * that is forbidden, a bad address ends the program. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "driver/umad/device.h"

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

	return copy_verdict(process_vm_readv(getpid(), &local, 1, &remote, 1, 0), n, to, from);
}

int user_store(void *to, const void *from, size_t n)
{
	struct iovec local = {(void *)(uintptr_t)from, n}, remote = {to, n};

	return copy_verdict(process_vm_writev(getpid(), &local, 1, &remote, 1, 0), n, to, from);
}
