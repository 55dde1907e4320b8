// SPDX-License-Identifier: BSD-2-Clause
/* See tap.h. */
#include "tie/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct ifreq tap_request(const char *name)
{
	struct ifreq req = {0};

	memcpy(req.ifr_name, name, strlen(name) < IFNAMSIZ ? strlen(name) + 1 : 1);
	return req;
}

static void tap_explain(const char *name, const char *what, char error[TAP_ERROR_BYTES])
{
	switch (errno) {
	case EPERM:
	case EACCES:
		snprintf(error, TAP_ERROR_BYTES,
			 "no right to it (%s): an interface of yours is made by 'ip tuntap add dev "
			 "%s "
			 "mode tap user NAME' as root; without root, do all in 'unshare -rn'",
			 what, name);
		break;
	case EBUSY:
		snprintf(error, TAP_ERROR_BYTES, "another program has it");
		break;
	case EINVAL:
		snprintf(error, TAP_ERROR_BYTES,
			 "it is not a TAP interface with one queue, or that is no name for one");
		break;
	case ENOENT:
	case ENODEV:
		snprintf(
			error, TAP_ERROR_BYTES,
			"%s: %s: the kernel has no TAP here ('modprobe tun', or give the container "
			"/dev/net/tun)",
			what, strerror(errno));
		break;
	default:
		snprintf(error, TAP_ERROR_BYTES, "%s: %s", what, strerror(errno));
	}
}

static int links_open(void)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (sock >= 0 && bind(sock, (const struct sockaddr *)&address, sizeof(address))) {
		close(sock);
		sock = -1;
	}
	return sock;
}

/* Attaches to the interface, or makes it.  NULL, or what failed, with errno. */
static const char *tap_attach(struct tap_device *t, const char *name)
{
	struct ifreq req = tap_request(name);
	bool there = if_nametoindex(name);

	t->query = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	t->links = links_open();
	if (t->query < 0 || t->links < 0)
		return "socket";
	t->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (t->fd < 0)
		return "/dev/net/tun";
	req.ifr_flags = IFF_TAP | IFF_NO_PI;
	if (ioctl(t->fd, TUNSETIFF, &req))
		return "TUNSETIFF";
	t->index = if_nametoindex(req.ifr_name);
	if (!t->index)
		return "its index";
	if (there)
		return NULL;
	if (ioctl(t->query, SIOCGIFFLAGS, &req))
		return "SIOCGIFFLAGS";
	req.ifr_flags |= IFF_UP;
	return ioctl(t->query, SIOCSIFFLAGS, &req) ? "SIOCSIFFLAGS" : NULL;
}

bool tap_open(struct tap_device *t, const char *name, char error[TAP_ERROR_BYTES])
{
	const char *what;

	*t = (struct tap_device){.fd = -1, .links = -1, .query = -1};
	if (!*name || strlen(name) >= IFNAMSIZ || strpbrk(name, "/ %:")) {
		snprintf(error, TAP_ERROR_BYTES, "that is no name for an interface");
		return false;
	}
	what = tap_attach(t, name);
	if (!what)
		return true;
	tap_explain(name, what, error);
	tap_close(t);
	return false;
}

static void descriptor_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void tap_close(struct tap_device *t)
{
	descriptor_close(t->fd);
	descriptor_close(t->links);
	descriptor_close(t->query);
}

/* Asks by the interface's index, because its name may have changed. */
static bool tap_flags(const struct tap_device *t, struct ifreq *req)
{
	*req = (struct ifreq){.ifr_ifindex = (int)t->index};
	return !ioctl(t->query, SIOCGIFNAME, req) && !ioctl(t->query, SIOCGIFFLAGS, req);
}

bool tap_is_up(const struct tap_device *t)
{
	struct ifreq req;

	return tap_flags(t, &req) && req.ifr_flags & IFF_UP;
}

bool tap_is_gone(const struct tap_device *t)
{
	struct ifreq req;

	return !tap_flags(t, &req) && errno == ENODEV;
}

void tap_links_taken(const struct tap_device *t)
{
	char message[8192];
	ssize_t n;

	do {
		n = recv(t->links, message, sizeof(message), MSG_TRUNC);
	} while (n > 0 || (n < 0 && (errno == ENOBUFS || errno == EINTR)));
}

void tap_set_carrier(const struct tap_device *t, bool on)
{
	int value = on;

	/* Kernels before 5.0 cannot do this, and the interface then keeps its carrier. */
	(void)ioctl(t->fd, TUNSETCARRIER, &value);
}
