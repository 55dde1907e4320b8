// SPDX-License-Identifier: BSD-2-Clause
/*
 * A umad file that several programs have, on a host with two ports: by fork, where parent and child both
 * go on, and by execve, after which the new program knows its number only.
 * Usage: passed_mads fork | passed_mads exec | passed_mads known FD (what 'exec' starts)
 */
#include "checklist.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS	  50u
#define LONG_DATA 100000u

static void ends_well(pid_t child)
{
	int status;

	must(waitpid(child, &status, 0) == child && status == 0, "the other ended with %#x",
	     status);
}

/* An agent comes, asks its own port, and goes. */
static void round_trip(int fd, uint64_t tid)
{
	uint32_t id = port_agent(fd, agent_of(CLASS_DIRECTED));
	struct letter l = letter_to_self(id, tid), got;

	letter_is_sent(fd, &l);
	got = letter_received(fd);
	must(got.status == 0 && got.id == id && (uint32_t)letter_tid(&got) == (uint32_t)tid,
	     "status %u, agent %u, TID %#lx", got.status, got.id, (unsigned long)letter_tid(&got));
	must(port_unregister(fd, id) == 0, "unregister");
	letter_free(&l);
	letter_free(&got);
}

static void rounds(int fd)
{
	for (uint64_t i = 1; i <= ROUNDS; i++)
		round_trip(fd, i);
}

/* Each goes on with one file that was there before, with a file of its own, and at last the parent with
 * the child's. */
static void both_go_on(void)
{
	int first = port_file(1), second = port_file(2);
	pid_t child;

	round_trip(first, 1);
	round_trip(second, 1);
	child = fork();
	must(child >= 0, "fork");
	rounds(child ? first : second);
	rounds(port_file(1));
	if (!child)
		_exit(0);
	ends_well(child);
	rounds(second);
	must(port_close(first) == 0 && port_close(second) == 0, "close");
}

/* ---- execve ---- */

static void message_arrives(int fd)
{
	struct agent server = server_of(CLASS_VENDOR, METHOD_SEND), client = agent_of(CLASS_VENDOR);
	int from = port_file(2);
	struct letter l = letter_with_data(lid_of(1), 1, LONG_DATA), got;

	server.rmpp = client.rmpp = 1;
	port_agent(fd, server);
	l.id = port_agent(from, client);
	letter_is_sent(from, &l);
	must(port_receive(fd, &got, LONG_DATA + MAD_BYTES) == 0, "receive");
	must(letter_has_data(&got, LONG_DATA), "%zu bytes, or others", got.bytes);
	letter_free(&l);
	letter_free(&got);
}

static void is_known(int fd)
{
	struct stat st;

	must(ioctl(fd, IB_USER_MAD_ENABLE_PKEY) == -1 && errno == EINVAL,
	     "the file has had an agent: %s", strerror(errno));
	must(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode), "its look: %o", st.st_mode);
	rounds(fd);
	message_arrives(fd);
	/* Numbers that are no umad file stay what they are. */
	must(ioctl(0, IB_USER_MAD_ENABLE_PKEY) == -1 && errno == ENOTTY, "%s", strerror(errno));
}

static void exec_goes_on(const char *program)
{
	int fd = port_file(1);
	char number[16];
	pid_t child;

	round_trip(fd, 1);
	must(fcntl(fd, F_SETFD, 0) == 0, "fcntl");
	snprintf(number, sizeof(number), "%d", fd);
	child = fork();
	must(child >= 0, "fork");
	if (!child) {
		execl(program, program, "known", number, (char *)NULL);
		_exit(127);
	}
	ends_well(child);
	rounds(fd);
	must(port_close(fd) == 0, "close");
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "fork") == 0)
		both_go_on();
	else if (argc == 2 && strcmp(argv[1], "exec") == 0)
		exec_goes_on(argv[0]);
	else if (argc == 3 && strcmp(argv[1], "known") == 0)
		is_known(atoi(argv[2]));
	else
		must(false, "see the head of passed.c");
	return 0;
}
