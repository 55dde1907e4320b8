// SPDX-License-Identifier: BSD-2-Clause
/*
 * The daemon ends before its clients, or its clients all at once: the next one stands alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "fabric/rundir.h"
#include "test_daemon.h"

static bool sock_exists(void)
{
	char path[RUNDIR_BYTES + 8];

	snprintf(path, sizeof(path), "%s/sock", test_daemon_dir());
	return !access(path, F_OK);
}

/*
 * The daemon goes and its client stays.  The next daemon gives out other numbers: a queue pair of
 * the one may be told to connect to one of the other, and must not find itself there.
 */
static void daemon_goes(int signum)
{
	struct fabric_client *old, *new;
	struct client_told t, other;
	int64_t first;

	old = test_client_open(&t);
	first = fabric_number_chunk(old, 0);
	CHECK(first > 0);
	kill(test_daemon_pid(), signum);
	test_client_await(&t.lost, 1);
	for (int i = 0; i < TEST_DAEMON_WAIT_MS && sock_exists(); i++)
		usleep(1000);
	CHECK(!sock_exists() && test_daemon_has_dir());
	CHECK(fabric_number_chunk(old, 0) == -ECONNRESET);
	CHECK(fabric_registry(old)->magic == REGISTRY_MAGIC);

	new = test_client_open(&other);
	CHECK(fabric_number_chunk(new, 0) != first);
	fabric_client_close(old);
	CHECK(test_daemon_has_dir());
	fabric_client_close(new);
	test_daemon_await_end();
}

static void test_daemon_killed(void)
{
	struct fabric_client *c;
	struct client_told t;

	daemon_goes(SIGKILL);
	daemon_goes(SIGTERM);
	/* Its client cleans up if no other daemon does. */
	c = test_client_open(&t);
	kill(test_daemon_pid(), SIGKILL);
	test_client_await(&t.lost, 1);
	fabric_client_close(c);
	test_daemon_await_end();
}

static bool tree_exists(void)
{
	char path[RUNDIR_BYTES + 64];

	snprintf(path, sizeof(path), "%s/hosts/host1/sys/class/infiniband/mlx5_0",
		 test_daemon_dir());
	return !access(path, F_OK);
}

/* A program that looks at its device tree again after the daemon was killed finds a tree again. */
static void test_lease_again(void)
{
	char text[16];
	int status;
	pid_t pid = fork();

	if (!pid) {
		CHECK(!fabric_read_attr(".", text, sizeof(text)) && tree_exists());
		CHECK(!fabric_read_attr(".", text, sizeof(text)) && tree_exists());
		kill(test_daemon_pid(), SIGKILL);
		for (int i = 0; i < TEST_DAEMON_WAIT_MS && rundir_is_locked(test_daemon_dir()); i++)
			usleep(1000);
		rundir_clear(test_daemon_dir());
		CHECK(!tree_exists());
		CHECK(!fabric_read_attr(".", text, sizeof(text)) && tree_exists());
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	test_daemon_await_end();
}

/* Many starters, many leavers, all at once: each gets a daemon that serves it. */
static void test_races(void)
{
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 20; i++) {
			struct fabric_client *c;
			struct client_told t;

			if (fork())
				continue;
			usleep((unsigned)(i * 7919 % 20000));
			c = test_client_open(&t);
			CHECK(fabric_number_chunk(c, 0) > 0);
			fabric_client_close(c);
			_exit(0);
		}
		for (int i = 0; i < 20; i++) {
			int status;

			CHECK(wait(&status) > 0 && status == 0);
		}
		test_daemon_await_end();
	}
}

int main(int argc, char **argv)
{
	test_daemon_begin(argc, argv);
	test_daemon_killed();
	test_lease_again();
	test_races();
	test_daemon_end();
	return 0;
}
