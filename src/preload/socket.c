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
	if (domain != AF_NETLINK || protocol != NETLINK_RDMA || !tree_active())
		return real(socket)(domain, type, protocol);
	errno = EPROTONOSUPPORT;
	return -1;
}
