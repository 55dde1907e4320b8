// SPDX-License-Identifier: BSD-2-Clause
/* See tap.h. */
#include "tie/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tie/link_watch.h"

/* ---- the interface ---- */

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

/* Attaches to the interface, or makes it.  NULL, or what failed, with errno. */
static const char *tap_attach(struct tap_device *t, const char *name)
{
	struct ifreq req = tap_request(name);
	bool there = if_nametoindex(name);

	t->query = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	t->links = link_watch_open(false);
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

static void tap_close(struct tap_device *t);

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

static void tap_close(struct tap_device *t)
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

/* Tells whether it is there, and set up. */
static bool tap_is_up(const struct tap_device *t)
{
	struct ifreq req;

	return tap_flags(t, &req) && req.ifr_flags & IFF_UP;
}

/* Tells whether it has gone. */
static bool tap_is_gone(const struct tap_device *t)
{
	struct ifreq req;

	return !tap_flags(t, &req) && errno == ENODEV;
}

/* Plugs its cable in, or pulls it. */
static void tap_set_carrier(const struct tap_device *t, bool on)
{
	int value = on;

	/* Kernels before 5.0 cannot do this, and the interface then keeps its carrier. */
	(void)ioctl(t->fd, TUNSETCARRIER, &value);
}

/* ---- the end of a tie ---- */

/* How many frames it takes in a row before it looks at the link. */
#define TAP_BATCH 64u

static struct end_tap *end_tap_of(struct tie_end *e)
{
	return container_of(e, struct end_tap, end);
}

/* The kernel takes no frame while the interface is down. */
static bool end_tap_put(struct tie_end *e, const uint8_t *frame, uint32_t bytes)
{
	return write(end_tap_of(e)->tap.fd, frame, bytes) == (ssize_t)bytes;
}

static bool end_tap_is_up(struct tie_end *e)
{
	struct end_tap *t = end_tap_of(e);

	t->up = tap_is_up(&t->tap);
	return t->up;
}

static void end_tap_port(struct tie_end *e, bool active)
{
	tap_set_carrier(&end_tap_of(e)->tap, active);
}

/* Returns true if there may be more. */
static bool end_tap_batch(struct end_tap *t, struct carrier *c)
{
	uint8_t frame[CARRIER_FRAME_MAX + 1];

	for (unsigned i = 0; i < TAP_BATCH; i++) {
		ssize_t n = read(t->tap.fd, frame, sizeof(frame));
		enum carrier_verdict v = CARRIER_UNHEARD;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (n >= (ssize_t)CARRIER_FRAME_MIN && n <= (ssize_t)CARRIER_FRAME_MAX)
			v = carrier_arrive(c, frame, (uint32_t)n);
		if (v == CARRIER_ENDS)
			return false;
		carrier_count_in(c, v != CARRIER_TAKEN);
	}
	return true;
}

static void end_tap_take(struct tie_end *e, struct carrier *c)
{
	struct end_tap *t = end_tap_of(e);
	const int fds[] = {t->tap.fd, t->tap.links};

	while (carrier_sleep(c, UINT64_MAX, fds, 2)) {
		while (end_tap_batch(t, c))
			;
		link_watch_drain(t->tap.links);
		if (tap_is_gone(&t->tap))
			carrier_stop(c);
		else if (tap_is_up(&t->tap) != t->up)
			carrier_link_changed(c);
	}
}

static const struct tie_end_ops end_tap_ops = {
	.put = end_tap_put,
	.take = end_tap_take,
	.is_up = end_tap_is_up,
	.port = end_tap_port,
};

void end_tap_init(struct end_tap *e, const struct tap_device *tap)
{
	*e = (struct end_tap){.end = {.ops = &end_tap_ops}, .tap = *tap};
}
