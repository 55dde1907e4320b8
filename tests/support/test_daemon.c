// SPDX-License-Identifier: BSD-2-Clause
#include "test_daemon.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "fabric/rundir.h"

static char base[] = "/tmp/softhca-test-XXXXXX";
static char dir[RUNDIR_BYTES];

void test_daemon_begin(int argc, char **argv)
{
	if (argc != 2 || access(argv[1], X_OK))
		SKIP("the argument must be the path of softhcad");
	CHECK(mkdtemp(base));
	snprintf(dir, sizeof(dir), "%s/fabric", base);
	setenv("SOFTHCA_DIR", dir, 1);
	setenv("SOFTHCA_DAEMON", argv[1], 1);
	unsetenv("SOFTHCA_HOST");
}

void test_daemon_end(void)
{
	rmdir(base);
}

const char *test_daemon_dir(void)
{
	return dir;
}

const char *test_daemon_base(void)
{
	return base;
}

bool test_daemon_has_dir(void)
{
	return !access(dir, F_OK);
}

void test_daemon_await_end(void)
{
	for (int i = 0; i < TEST_DAEMON_WAIT_MS && test_daemon_has_dir(); i++)
		usleep(1000);
	CHECK(!test_daemon_has_dir());
}

pid_t test_daemon_pid(void)
{
	struct msg m = {0};
	int fds[MSG_MAX_FDS];
	int sock = link_open(dir, NULL, &m, MSG_INFO, fds);

	CHECK(sock >= 0);
	msg_close_fds(fds);
	close(sock);
	return m.info_reply.pid;
}

int test_daemon_set_port(uint32_t row, uint32_t state)
{
	struct msg m = {.set_port = {row, state}};
	int fds[MSG_MAX_FDS];
	int sock = link_open(dir, NULL, &m, MSG_SET_PORT, fds);

	if (sock < 0)
		return sock;
	close(sock);
	return 0;
}

static void on_channel(void *user, uint16_t peer, int fd, size_t bytes, int side)
{
	struct client_told *t = user;

	CHECK(bytes == FABRIC_CHANNEL_BYTES);
	t->peer = peer;
	t->side = side;
	t->fd = fd;
	t->channels++;
}

static void on_gone(void *user, uint16_t peer)
{
	struct client_told *t = user;

	t->peer = peer;
	t->gone++;
}

static void on_port(void *user, uint32_t row, enum ib_event event)
{
	struct client_told *t = user;

	t->row = (int)row;
	if (event == IB_EVENT_PORT_ERR)
		t->downs++;
	else if (event == IB_EVENT_PORT_ACTIVE)
		t->ups++;
}

static void on_lost(void *user)
{
	((struct client_told *)user)->lost++;
}

struct fabric_client_ops test_client_ops(void *user)
{
	return (struct fabric_client_ops){.channel = on_channel,
					  .gone = on_gone,
					  .port = on_port,
					  .lost = on_lost,
					  .user = user};
}

struct fabric_client *test_client_open(struct client_told *t)
{
	const struct fabric_client_ops ops = test_client_ops(t);
	struct fabric_client *c;

	memset(t, 0, sizeof(*t));
	CHECK(fabric_client_open(&ops, &c) == 0);
	return c;
}

void test_client_await(atomic_int *value, int want)
{
	for (int i = 0; i < TEST_DAEMON_WAIT_MS && *value != want; i++)
		usleep(1000);
	CHECK(*value == want);
}

int stranger_connect(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	CHECK(sock >= 0 && !connect(sock, (struct sockaddr *)&addr, sizeof(addr)));
	return sock;
}

int stranger_hello(const char *host, uint16_t *slot)
{
	const struct timeval limit = {.tv_sec = TEST_DAEMON_WAIT_MS / 1000};
	struct msg m = {0};
	int fds[MSG_MAX_FDS];
	int sock = stranger_connect();

	CHECK(!setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	snprintf(m.hello.host, sizeof(m.hello.host), "%s", host);
	CHECK(link_call(sock, &m, MSG_HELLO, fds) == 0);
	msg_close_fds(fds);
	*slot = m.hello_reply.slot;
	return sock;
}

int stranger_call(int sock, struct msg *m, enum msg_type type)
{
	int fds[MSG_MAX_FDS];
	int ret = link_call(sock, m, type, fds);

	if (!ret)
		msg_close_fds(fds);
	return ret;
}

int stranger_channel(int sock, uint16_t peer)
{
	struct msg m = {.peer.peer = peer};

	return stranger_call(sock, &m, MSG_CHANNEL);
}

void stranger_is_cut(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	char buf[sizeof(struct msg)];
	ssize_t n;

	do {
		CHECK(poll(&p, 1, TEST_DAEMON_WAIT_MS) == 1);
		n = recv(sock, buf, sizeof(buf), 0);
	} while (n > 0);
	close(sock);
}

void test_limit_descriptors(pid_t pid, rlim_t n, struct rlimit *saved)
{
	struct rlimit few;

	CHECK(!prlimit(pid, RLIMIT_NOFILE, NULL, saved));
	few = *saved;
	few.rlim_cur = n;
	CHECK(!prlimit(pid, RLIMIT_NOFILE, &few, NULL));
}
