// SPDX-License-Identifier: BSD-2-Clause
/* See link_watch.h. */
#include "tie/link_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

int link_watch_open(bool addresses)
{
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups =
			RTMGRP_LINK | (addresses ? RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR : 0),
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void link_watch_drain(int fd)
{
	char message[8192];
	ssize_t n;

	do {
		n = recv(fd, message, sizeof(message), MSG_TRUNC);
	} while (n > 0 || (n < 0 && (errno == ENOBUFS || errno == EINTR)));
}
