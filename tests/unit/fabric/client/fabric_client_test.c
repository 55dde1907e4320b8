// SPDX-License-Identifier: BSD-2-Clause
/*
 * The client's control thread without descriptors and without memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "test_daemon.h"

/* Opens a channel to 'to' and takes its port down when told so, and tells its slot. */
static pid_t peer_start(uint16_t to, uint32_t row, int pipes[2])
{
	pid_t pid = fork();
	uint16_t slot;
	int sock;

	if (pid)
		return pid;
	close(pipes[0]);
	sock = stranger_hello("host2", &slot);
	CHECK(write(pipes[1], &slot, sizeof(slot)) == sizeof(slot));
	CHECK(read(pipes[1], &slot, sizeof(slot)) == sizeof(slot));
	CHECK(stranger_channel(sock, to) == 0);
	CHECK(test_daemon_set_port(row, IB_PORT_DOWN) == 0);
	CHECK(read(pipes[1], &slot, sizeof(slot)) == 0);
	_exit(0);
}

/*
 * A peer connects to a process that has no descriptor left: no channel, but the process does not
 * take the daemon for broken, and the channel comes when there is room.
 */
static void test_no_descriptors(void)
{
	struct fabric_client *c;
	uint32_t rows[SLOT_PORTS];
	struct rlimit saved;
	int pipes[2], fd, side, top, mate;
	struct client_told t;
	uint16_t slot, mate_slot;
	size_t bytes;
	pid_t peer;

	c = test_client_open(&t);
	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2);
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pipes));
	peer = peer_start(fabric_slot(c), rows[0], pipes);
	close(pipes[1]);
	CHECK(read(pipes[0], &slot, sizeof(slot)) == sizeof(slot));
	mate = stranger_hello("host2", &mate_slot);
	top = open("/dev/null", O_RDONLY); /* the lowest number that is free */
	CHECK(top >= 0);
	close(top);
	test_limit_descriptors(0, (rlim_t)top, &saved);

	CHECK(write(pipes[0], &slot, sizeof(slot)) == sizeof(slot));
	/* Told after the channel. */
	test_client_await(&t.downs, 1);
	CHECK(t.lost == 0 && t.channels == 0);
	CHECK(fabric_open_channel(c, slot, &fd, &bytes, &side) == -EMFILE);
	/* One of which the other end learns only. */
	CHECK(fabric_open_channel(c, mate_slot, &fd, &bytes, &side) == -EMFILE);
	CHECK(t.lost == 0 && fabric_number_chunk(c, 0) > 0);

	CHECK(!prlimit(0, RLIMIT_NOFILE, &saved, NULL));
	test_client_await(&t.channels, 2);
	CHECK(t.peer == slot || t.peer == mate_slot);
	close(t.fd);
	CHECK(fabric_open_channel(c, slot, &fd, &bytes, &side) == 0);
	close(fd);
	close(pipes[0]);
	CHECK(waitpid(peer, NULL, 0) == peer);
	close(mate);
	test_client_await(&t.gone, 2);
	fabric_client_close(c);
	test_daemon_await_end();
}

static atomic_int failing; /* so many calls yet */
static int failing_errno;

ssize_t __real_recvmsg(int sock, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int sock, struct msghdr *m, int flags);

ssize_t __wrap_recvmsg(int sock, struct msghdr *m, int flags)
{
	int left = failing;

	while (left > 0)
		if (atomic_compare_exchange_strong(&failing, &left, left - 1)) {
			errno = failing_errno;
			return -1;
		}
	return __real_recvmsg(sock, m, flags);
}

/* The daemon is there, and the control thread hears it later. */
static void test_recv_fails(void)
{
	static const int errors[] = {ENOMEM, ENOBUFS, EMFILE, ENFILE, EINTR};
	struct fabric_client *c;
	uint32_t rows[SLOT_PORTS];
	struct client_told t;

	c = test_client_open(&t);
	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2);
	for (unsigned i = 0; i < array_size(errors); i++) {
		/* It waits in a call already; what comes next is for the next one. */
		failing_errno = errors[i];
		failing = 3;
		CHECK(fabric_number_chunk(c, NUMBER_QPN) > 0);
		test_client_await(&failing, 0);
		CHECK(fabric_number_chunk(c, NUMBER_QPN) > 0);
		CHECK(t.lost == 0);
	}
	/* It ends all the same. */
	failing_errno = ENOMEM;
	failing = INT_MAX;
	fabric_client_close(c);
	failing = 0;
	CHECK(t.lost == 0);
	test_daemon_await_end();
}

int main(int argc, char **argv)
{
	test_daemon_begin(argc, argv);
	test_no_descriptors();
	test_recv_fails();
	test_daemon_end();
	return 0;
}
