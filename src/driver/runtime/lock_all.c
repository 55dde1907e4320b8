// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/lock_all.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/runtime/mapping.h"

/* By their names; and files of peers, which are in no core file and no child (exposure/segment.h). */
static bool is_devices(const struct vma *v, const char *flags)
{
	return !strncmp(v->name, "/memfd:softhca-", 15) || !strncmp(v->name, "/memfd:uverbs", 13) ||
	       (v->perms[3] == 's' && strstr(flags, " dd") && strstr(flags, " dc"));
}

/* What cannot be filled is left, as the kernel leaves it. */
static bool lock_and_fill(const struct vma *v, const char *flags, void *arg)
{
	(void)arg;
	(void)syscall(is_devices(v, flags) ? SYS_munlock : SYS_mlock, v->start, v->end - v->start);
	return true;
}

/* First all of it, to be filled when it is touched: that fails where the call itself would. */
int lock_all(int flags)
{
	int error = errno;

	if ((flags & (MCL_CURRENT | MCL_ONFAULT)) != MCL_CURRENT)
		return (int)syscall(SYS_mlockall, flags);
	if (syscall(SYS_mlockall, flags | MCL_ONFAULT))
		return -1;
	/* What is mapped from now on is filled at once, if that is wanted. */
	if (flags & MCL_FUTURE)
		(void)syscall(SYS_mlockall, MCL_FUTURE);
	if (!mappings_each(lock_and_fill, NULL) && syscall(SYS_mlockall, flags))
		return -1;
	errno = error;
	return 0;
}
