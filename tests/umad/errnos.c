// SPDX-License-Identifier: BSD-2-Clause
/* Runs the tables of mistakes that its arguments name. */
#include "errnos.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned failures;
uint8_t *nowhere;

void call_gave(const char *what, long ret, int error)
{
	int got = ret < 0 ? errno : 0;

	if (got == error)
		return;
	printf("%s: %s, not %s\n", what, got ? strerrorname_np(got) : "success",
	       error ? strerrorname_np(error) : "success");
	failures++;
}

int umad_file(int old)
{
	int fd = open("/dev/infiniband/umad0", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || (!old && ioctl(fd, IB_USER_MAD_ENABLE_PKEY) != 0)) {
		perror("umad0");
		exit(1);
	}
	return fd;
}

uint32_t umad_agent(int fd, unsigned qpn, unsigned class, unsigned rmpp)
{
	struct ib_user_mad_reg_req r = {
		.qpn = (uint8_t)qpn,
		.mgmt_class = (uint8_t) class,
		.mgmt_class_version = 1,
		.oui = {OUR_OUI >> 16, OUR_OUI >> 8 & 0xff, OUR_OUI & 0xff},
		.rmpp_version = (uint8_t)rmpp,
	};

	if (ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r) != 0) {
		perror("an agent");
		exit(1);
	}
	return r.id;
}

struct question question_of(uint32_t id, uint32_t tid)
{
	struct question q = {{0}};
	struct ib_user_mad_hdr *h = (struct ib_user_mad_hdr *)q.bytes;
	uint8_t *mad = q.bytes + NEW_HEADER;

	h->id = id;
	h->timeout_ms = WAIT_MS;
	h->lid = 0xffff;
	mad[0] = 1;
	mad[1] = 0x81;
	mad[2] = 1;
	mad[3] = 1;
	mad[14] = (uint8_t)(tid >> 8);
	mad[15] = (uint8_t)tid;
	mad[17] = 0x11;
	memset(mad + 32, 0xff, 4);
	return q;
}

int question_answered(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, WAIT_MS) == 1;
}

static const struct {
	const char *name;
	void (*test)(void);
} tables[] = {
	{"register", errnos_of_register}, {"write", errnos_of_write},
	{"read", errnos_of_read},	  {"files", errnos_of_files},
	{"issm", errnos_of_issm},	  {"ethernet", errnos_of_ethernet},
};

int main(int argc, char **argv)
{
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *two = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned found = 0;

	if (two == MAP_FAILED || mprotect(two + page, (size_t)page, PROT_NONE) != 0)
		return 1;
	nowhere = two + page;
	for (int i = 1; i < argc; i++)
		for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
			if (strcmp(argv[i], tables[t].name) == 0) {
				tables[t].test();
				found++;
			}
	return failures != 0 || found != (unsigned)argc - 1;
}
