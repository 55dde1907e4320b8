/* SPDX-License-Identifier: BSD-2-Clause */
/* What the caller may do (capabilities(7)). */
#pragma once

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Is that one of CAP_... in force for the calling thread? */
static inline bool capability_is_effective(unsigned capability)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return !syscall(SYS_capget, &head, data) &&
	       data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}
