// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that has all the descriptors that it may have goes on with the umad file that is one of them: agents, answers of
 * many packets, and what it has stays open.
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

#define CLASS_SA     3
#define GET_TABLE    0x12
#define NODE_RECORD  0x11
#define MAD_BYTES    256
#define ROOM	     65536
#define DESCRIPTORS  64
#define TIMEOUT_MS   2000
#define SA_ATTRIBUTE 56 /* of its answer: the first record, with a LID first */

#define must(condition) ((condition) ? (void)0 : failed(#condition, __LINE__))

static void failed(const char *what, int line)
{
	fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, line, what, errno);
	exit(1);
}

/* Above the highest that is allowed there are some of softhca's own. */
static void take_all(unsigned spare)
{
	const struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
	int last = -1, fd;

	must(!setrlimit(RLIMIT_NOFILE, &limit));
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	must(errno == EMFILE && last > 0);
	for (unsigned i = 0; i < spare; i++)
		must(!close(last - (int)i));
}

static void none_is_missing(void)
{
	for (int fd = 0; fd < DESCRIPTORS; fd++)
		must(fcntl(fd, F_GETFD) >= 0);
	must(open("/dev/null", O_RDONLY) < 0 && errno == EMFILE);
}

static void ask_for_nodes(int port, int agent, int lid, uint8_t number, uint8_t *umad)
{
	uint8_t *mad;
	int length = ROOM;

	memset(umad, 0, umad_size() + MAD_BYTES);
	mad = umad_get_mad(umad);
	mad[0] = 1;
	mad[1] = CLASS_SA;
	mad[2] = 2;
	mad[3] = GET_TABLE;
	mad[17] = NODE_RECORD;
	mad[15] = number;
	umad_set_addr(umad, lid, 1, 0, 0x80010000);
	must(umad_send(port, agent, umad, MAD_BYTES, TIMEOUT_MS, 3) == 0);
	must(umad_recv(port, umad, &length, -1) == agent && umad_status(umad) == 0);
	must(length > MAD_BYTES && mad[3] == (GET_TABLE | 0x80) && mad[SA_ATTRIBUTE + 1]);
}

int main(int argc, char **argv)
{
	unsigned spare = argc == 3 ? (unsigned)atoi(argv[2]) : DESCRIPTORS;
	int lid = argc == 3 ? atoi(argv[1]) : 0, port = umad_open_port(NULL, 0), agent;
	uint8_t *umad = malloc(umad_size() + ROOM);

	must(spare < DESCRIPTORS && lid && port >= 0 && umad);
	take_all(spare);
	agent = umad_register(port, CLASS_SA, 2, 1, NULL);
	must(agent >= 0);
	for (uint8_t i = 1; i <= 3; i++)
		ask_for_nodes(port, agent, lid, i, umad);
	must(umad_unregister(port, agent) == 0);
	must(umad_unregister(port, agent) != 0 && errno == EINVAL);
	if (!spare)
		none_is_missing();
	free(umad);
	return 0;
}
