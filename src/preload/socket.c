// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel's RDMA netlink family lists the machine's own devices, if it has any.  Libraries that
 * are refused it look in the device tree instead, as on a kernel without RDMA.
 */
#include "preload/libc.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "preload/tree.h"

exported int socket(int domain, int type, int protocol)
{
	if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
		return real(socket)(domain, type, protocol);
	if (!tree_active()) {
		int fd = real(socket)(domain, type, protocol);
		int saved_errno = errno;

		/* A user who preloads us and asks for devices wants ours; if the machine has none
		 * either, nothing else would say why. */
		if (fd < 0)
			tree_missed();
		errno = saved_errno;
		return fd;
	}
	errno = EPROTONOSUPPORT;
	return -1;
}
