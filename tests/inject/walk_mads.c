/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps of the files that carry MADs: an agent that asks its own port and has an answer, or hears that
 * none came; a long message that nobody is waiting for; and the IsSM bit.
 */
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "walk.h"

#define MAD_BYTES     256u
#define LONG_BYTES    100000u /* more than a socket takes */
#define VENDOR_CLASS  0x32
#define METHOD_GET    1
#define METHOD_SEND   3
#define NODE_INFO     0x11
#define LOST_MS	      3000 /* in a round with faults, where MADs may be lost */
#define ANSWER_MS     200
#define RMPP_OF_FIRST 0x01 /* version 1, DATA, active */

struct letter {
	struct ib_user_mad_hdr header;
	uint8_t mad[MAD_BYTES];
};

/* The devices have one port each, and their numbers are alike. */
static int device_file(const struct walk *w, const char *kind, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/infiniband/%s%c", kind,
		 w->device[strlen(w->device) - 1]);
	return open(path, flags | O_CLOEXEC);
}

static bool is_infiniband(const struct walk *w)
{
	return w->have_port && w->port.link_layer != IBV_LINK_LAYER_ETHERNET;
}

/*
 * A daemon that fails for good answers none of these requests, each of which then takes ten seconds: one
 * in a few rounds is enough.
 */
static bool mads_left_out(const struct walk *w)
{
	return w->lasting && getenv("INJECT_WITHOUT_MADS");
}

WALK_STEP(umad_make)
{
	if (mads_left_out(w))
		return WALK_SKIP;
	w->umad = device_file(w, "umad", O_RDWR | O_NONBLOCK);
	return w->umad < 0 ? walk_errno() : 0;
}

WALK_STEP(umad_drop)
{
	int fd = w->umad;

	w->umad = -1;
	return fd >= 0 && close(fd) ? errno : 0;
}

WALK_STEP(mad_agents_make)
{
	struct ib_user_mad_reg_req2 vendor = {.qpn = 1,
					      .mgmt_class = VENDOR_CLASS,
					      .mgmt_class_version = 1,
					      .oui = 0x1405,
					      .rmpp_version = 1};

	if (w->umad < 0)
		return WALK_SKIP;
	w->agents = !ioctl(w->umad, IB_USER_MAD_REGISTER_AGENT2, &vendor);
	if (!w->agents)
		return walk_errno();
	/* What was refused for now is not taken. */
	return ioctl(w->umad, IB_USER_MAD_REGISTER_AGENT2, &vendor) ? walk_errno() : 0;
}

static struct letter letter_of(const struct walk *w, unsigned class, unsigned method)
{
	struct letter l = {.header = {.qpn = htobe32(1),
				      .lid = htobe16(w->port.lid),
				      .timeout_ms = ANSWER_MS}};

	l.mad[0] = 1;
	l.mad[1] = (uint8_t) class;
	l.mad[2] = 1;
	l.mad[3] = (uint8_t)method;
	l.mad[15] = 7;
	l.mad[17] = NODE_INFO;
	l.mad[38] = 0x14;
	l.mad[39] = 0x05;
	return l;
}

/* Each request with a time limit ends in something to be read. */
static int answer_await(const struct walk *w)
{
	struct pollfd p = {.fd = w->umad, .events = POLLIN};
	struct letter l;
	ssize_t n;

	if (poll(&p, 1, w->faulty ? LOST_MS : WALK_PATIENCE_S * 1000) != 1)
		return w->faulty ? EAGAIN : WALK_HUNG;
	do {
		n = read(w->umad, &l, sizeof(l));
	} while (n < 0 && errno == ENOMEM && !w->lasting);
	if (n < 0)
		return walk_errno();
	if (n == sizeof(l) || l.header.status == ETIMEDOUT)
		return 0;
	fprintf(stderr, "read: %zd bytes, status %u\n", n, l.header.status);
	return WALK_WRONG;
}

WALK_STEP(mad_asked)
{
	struct letter l = letter_of(w, VENDOR_CLASS, METHOD_GET);

	if (!w->agents)
		return WALK_SKIP;
	if (write(w->umad, &l, sizeof(l)) != sizeof(l))
		return walk_errno();
	return answer_await(w);
}

/* Of several packets, of which nobody acknowledges the first. */
WALK_STEP(mad_long)
{
	static uint8_t bytes[sizeof(struct ib_user_mad_hdr) + LONG_BYTES];
	struct letter l = letter_of(w, VENDOR_CLASS, METHOD_SEND);

	if (!w->agents)
		return WALK_SKIP;
	l.mad[15] = 8;
	l.mad[24] = 1;
	l.mad[25] = 1;
	l.mad[26] = RMPP_OF_FIRST;
	memcpy(bytes, &l, sizeof(l));
	if (write(w->umad, bytes, sizeof(bytes)) != sizeof(bytes))
		return walk_errno();
	return answer_await(w);
}

WALK_STEP(mad_agents_drop)
{
	uint32_t id = 0;
	bool there = w->agents;

	w->agents = false;
	return there && ioctl(w->umad, IB_USER_MAD_UNREGISTER_AGENT, &id) && !w->faulty ? errno : 0;
}

WALK_STEP(issm_make)
{
	if (!is_infiniband(w) || mads_left_out(w))
		return WALK_SKIP;
	w->issm = device_file(w, "issm", O_RDONLY | O_NONBLOCK);
	return w->issm < 0 ? walk_errno() : 0;
}

WALK_STEP(issm_drop)
{
	int fd = w->issm;

	w->issm = -1;
	return fd >= 0 && close(fd) ? errno : 0;
}

const struct walk_step walk_mads[] = {
	{WALK_BOTH(umad)},
	{WALK_BOTH(mad_agents)},
	{"mad asked", mad_asked, NULL},
	{"mad long", mad_long, NULL},
	{WALK_BOTH(issm)},
	{NULL, NULL, NULL},
};
