// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that has all the descriptors that it may have writes and reads plain MADs as before.  For agents it needs one
 * more, for answers of many packets two: without them it hears EMFILE, and an answer stays until it has them.
 * Usage: full_mads LID      of a subnet manager
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CLASS_SA      3
#define GET	      0x01
#define GET_TABLE     0x12
#define NODE_RECORD   0x11
#define MAD_BYTES     256
#define ROOM	      65536
#define DESCRIPTORS   64
#define TIMEOUT_MS    2000
#define AT_COMPONENTS 48
#define SA_ATTRIBUTE  56 /* the record, or the first one of the answer: begins with a LID */

#define must(condition) ((condition) ? (void)0 : failed(#condition, __LINE__))

static void failed(const char *what, int line)
{
	fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, line, what, errno);
	exit(1);
}

/* The highest that is allowed is taken last.  Above it there are some of softhca's own. */
static int take_all(void)
{
	const struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
	int last = -1, fd;

	must(!setrlimit(RLIMIT_NOFILE, &limit));
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	must(errno == EMFILE && last > 0);
	return last;
}

static void none_is_missing(void)
{
	for (int fd = 0; fd < DESCRIPTORS; fd++)
		must(fcntl(fd, F_GETFD) >= 0);
	must(open("/dev/null", O_RDONLY) < 0 && errno == EMFILE);
}

static void ask(int port, int agent, int lid, uint8_t method, uint8_t *umad)
{
	static uint8_t number;
	uint8_t *mad;

	memset(umad, 0, umad_size() + MAD_BYTES);
	mad = umad_get_mad(umad);
	mad[0] = 1;
	mad[1] = CLASS_SA;
	mad[2] = 2;
	mad[3] = method;
	mad[17] = NODE_RECORD;
	mad[15] = ++number;
	mad[AT_COMPONENTS + 7] = method == GET; /* the LID */
	mad[SA_ATTRIBUTE] = (uint8_t)(lid >> 8);
	mad[SA_ATTRIBUTE + 1] = (uint8_t)lid;
	umad_set_addr(umad, lid, 1, 0, 0x80010000);
	must(umad_send(port, agent, umad, MAD_BYTES, TIMEOUT_MS, 3) == 0);
}

static void answer_comes(int port, int agent, uint8_t method, uint8_t *umad)
{
	uint8_t *mad = umad_get_mad(umad);
	int length = ROOM;

	must(umad_recv(port, umad, &length, -1) == agent && umad_status(umad) == 0);
	must((length > MAD_BYTES) == (method == GET_TABLE) && mad[3] == (method | 0x80));
	must(mad[SA_ATTRIBUTE + 1]);
}

/* Nothing is lost by it. */
static void answer_stays(int port, uint8_t *umad)
{
	int length = ROOM;

	must(umad_poll(port, TIMEOUT_MS) == 0);
	must(umad_recv(port, umad, &length, -1) == -EMFILE);
}

static void agents_are_refused(int port, int agent)
{
	must(umad_register(port, CLASS_SA, 2, 1, NULL) < 0 && errno == EMFILE);
	must(umad_unregister(port, agent) != 0 && errno == EMFILE);
}

int main(int argc, char **argv)
{
	int lid = argc == 2 ? atoi(argv[1]) : 0, port = umad_open_port(NULL, 0);
	int agent = umad_register(port, CLASS_SA, 2, 1, NULL), last;
	uint8_t *umad = malloc(umad_size() + ROOM);

	must(lid && port >= 0 && umad && agent >= 0);
	last = take_all();
	ask(port, agent, lid, GET, umad);
	answer_comes(port, agent, GET, umad);
	agents_are_refused(port, agent);
	ask(port, agent, lid, GET_TABLE, umad);
	answer_stays(port, umad);
	none_is_missing();
	must(!close(last));
	answer_stays(port, umad);
	must(!close(last - 1));
	answer_comes(port, agent, GET_TABLE, umad);
	must(umad_unregister(port, agent) == 0);
	free(umad);
	return 0;
}
