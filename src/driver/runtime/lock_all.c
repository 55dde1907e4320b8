// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/lock_all.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/runtime/mapping.h"

/* Is this memory the device's, which its name says, or a file of a peer, which is in no core file
 * and in no child (exposure/segment.h)? */
static bool is_devices(const struct vma *v, const char *flags)
{
	return !strncmp(v->name, "/memfd:softhca-", 15) || !strncmp(v->name, "/memfd:uverbs", 13) ||
	       (v->perms[3] == 's' && strstr(flags, " dd") && strstr(flags, " dc"));
}

/* If some of it cannot be filled we go on, as the kernel does. */
static bool lock_and_fill(const struct vma *v, const char *flags, void *arg)
{
	(void)arg;
	(void)syscall(is_devices(v, flags) ? SYS_munlock : SYS_mlock, v->start, v->end - v->start);
	return true;
}

/* First locks all memory, to be filled when it is touched: that fails where the call itself would
 * fail. */
int lock_all(int flags)
{
	int error = errno;

	if ((flags & (MCL_CURRENT | MCL_ONFAULT)) != MCL_CURRENT)
		return (int)syscall(SYS_mlockall, flags);
	if (syscall(SYS_mlockall, flags | MCL_ONFAULT))
		return -1;
	/* The kernel fills what is mapped from now on at once, if the program wants that. */
	if (flags & MCL_FUTURE)
		(void)syscall(SYS_mlockall, MCL_FUTURE);
	if (!mappings_each(lock_and_fill, NULL) && syscall(SYS_mlockall, flags))
		return -1;
	errno = error;
	return 0;
}
