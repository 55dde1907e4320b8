// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhcad and its client library against each other: slots, numbers, channels, live attributes.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "test_daemon.h"

static atomic_int sigchlds;

static void on_sigchld(int sig)
{
	(void)sig;
	sigchlds++;
}

/* The program that starts the daemon has no child by it, and no signal. */
static void test_start_and_leave(void)
{
	struct fabric_client *c;
	uint32_t rows[SLOT_PORTS];
	struct client_told t;

	CHECK(signal(SIGCHLD, on_sigchld) != SIG_ERR);
	c = test_client_open(&t);
	CHECK(sigchlds == 0);
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	CHECK(signal(SIGCHLD, SIG_DFL) != SIG_ERR);

	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2);
	CHECK(fabric_subnet(c)->ports[rows[0]].ethernet == 0);
	CHECK(fabric_subnet(c)->ports[rows[1]].ethernet == 1);
	CHECK(fabric_slots(c)[fabric_slot(c)].pid == getpid());
	fabric_client_close(c);
	test_daemon_await_end();
}

/* The indices agree with the rows, and no GID names two ports. */
static void test_subnet(void)
{
	const struct subnet *s;
	struct fabric_client *c;
	struct client_told t;

	c = test_client_open(&t);
	s = fabric_subnet(c);
	/* A switch of 36 ports and its own stands behind the hosts. */
	CHECK(s->nports == 4 + 37 && s->nnodes == 5 && s->nodes[4].kind == SUBNET_SWITCH);
	for (uint32_t i = 0; i < 4; i++) {
		const struct subnet_port *p = &s->ports[i];
		struct subnet_gid_entry gid;
		uint32_t valid = 0;

		CHECK(p->state == IB_PORT_ACTIVE);
		CHECK(p->ethernet ? p->lid == 0 : subnet_port_by_lid(s, (uint16_t)p->lid) == i);
		for (uint32_t g = 0; g < SUBNET_ETHERNET_GIDS; g++) {
			if (!subnet_gid(s, i, g, &gid))
				continue;
			valid++;
			CHECK(subnet_port_by_gid(s, &gid.gid) == i);
		}
		CHECK(valid >= 1 && valid < SUBNET_ETHERNET_GIDS);
		for (uint32_t k = 0; k < i; k++)
			CHECK(subnet_node_of(s, k)->guid != subnet_node_of(s, i)->guid);
	}
	fabric_client_close(c);
	test_daemon_await_end();
}

static void test_numbers(void)
{
	struct fabric_client *a, *b;
	const struct registry *r;
	struct client_told ta, tb;
	int64_t first, other;

	a = test_client_open(&ta);
	b = test_client_open(&tb);
	r = fabric_registry(a);
	first = fabric_number_chunk(a, 0);
	other = fabric_number_chunk(b, 0);
	CHECK(first >= 1024 && other >= 1024 && first != other && first % 1024 == 0);
	CHECK(r->qpn_slot_plus_1[first >> REGISTRY_CHUNK_SHIFT] == fabric_slot(a) + 1);
	CHECK(r->qpn_slot_plus_1[other >> REGISTRY_CHUNK_SHIFT] == fabric_slot(b) + 1);
	CHECK(fabric_number_chunk(a, 1) >= 1024 && fabric_number_chunk(a, 2) >= 1024);
	CHECK(fabric_number_chunk(a, 3) >= 1024 && fabric_number_chunk(a, 4) == -EINVAL);
	fabric_client_close(a);
	/* Freed, and not given out again at once. */
	for (int i = 0; i < TEST_DAEMON_WAIT_MS && fabric_registry(b)->qpn_slot_plus_1[first >> 10];
	     i++)
		usleep(1000);
	CHECK(fabric_registry(b)->qpn_slot_plus_1[first >> 10] == 0);
	CHECK(fabric_number_chunk(b, 0) != first);
	/* All of them: then no more, and no crash. */
	while ((first = fabric_number_chunk(b, 0)) > 0)
		CHECK(first + 1023 < 0xffffff);
	CHECK(first == -ENOSPC);
	fabric_client_close(b);
	test_daemon_await_end();
}

static void test_channel(void)
{
	struct fabric_client *a, *b;
	struct client_told ta, tb;
	uint16_t slot_a;
	int fd, fd2, side;
	size_t bytes;
	char *pa, *pb;

	a = test_client_open(&ta);
	b = test_client_open(&tb);
	slot_a = fabric_slot(a);
	CHECK(fabric_open_channel(a, fabric_slot(a), &fd, &bytes, &side) == -EINVAL);
	CHECK(fabric_open_channel(a, 700, &fd, &bytes, &side) == -ENOTCONN);
	CHECK(fabric_open_channel(a, fabric_slot(b), &fd, &bytes, &side) == 0);
	CHECK(bytes == FABRIC_CHANNEL_BYTES && side == (slot_a > fabric_slot(b)));
	test_client_await(&tb.channels, 1);
	CHECK(tb.peer == slot_a && tb.side == 1 - side);
	/* From the other side, the same memory. */
	CHECK(fabric_open_channel(b, slot_a, &fd2, &bytes, &side) == 0);
	pa = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pb = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd2, 0);
	CHECK(pa != MAP_FAILED && pb != MAP_FAILED && pa[bytes - 1] == 0);
	memcpy(pa, "through", sizeof("through"));
	CHECK(!strcmp(pb, "through"));
	CHECK(ftruncate(fd, 0) == -1);
	munmap(pa, bytes);
	munmap(pb, bytes);
	close(fd);
	close(fd2);
	close(tb.fd);
	fabric_client_close(a);
	test_client_await(&tb.gone, 1);
	CHECK(tb.peer == slot_a);
	CHECK(fabric_open_channel(b, slot_a, &fd, &bytes, &side) == -ENOTCONN);
	fabric_client_close(b);
	test_daemon_await_end();
}

static unsigned long long read_counter(const char *name)
{
	char path[256], text[64];
	ssize_t n;

	snprintf(path, sizeof(path), "sys/class/infiniband/mlx5_0/ports/1/%s", name);
	n = fabric_read_attr(path, text, sizeof(text) - 1);
	CHECK(n > 0);
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

/* Counters of the living and of the dead add up; those of a process killed are not lost. */
static void test_counters(void)
{
	struct fabric_client *c;
	struct client_told t, child_told;
	int pipefd[2];
	char text[64];
	pid_t pid;

	c = test_client_open(&t);
	CHECK(read_counter("counters/port_xmit_data") == 0);
	CHECK(read_counter("hw_counters/lifespan") == 10);
	fabric_slots(c)[fabric_slot(c)].counters[0][0][PORT_XMIT_DATA] = 5;
	CHECK(read_counter("counters/port_xmit_data") == 5);
	CHECK(pipe(pipefd) == 0);
	pid = fork();
	if (!pid) {
		struct fabric_client *mine;

		fabric_client_forget(c);
		mine = test_client_open(&child_told);
		fabric_slots(mine)[fabric_slot(mine)].counters[0][0][PORT_XMIT_DATA] = 37;
		CHECK(write(pipefd[1], "", 1) == 1);
		pause();
		_exit(0);
	}
	CHECK(read(pipefd[0], text, 1) == 1);
	CHECK(read_counter("counters/port_xmit_data") == 42);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	for (int i = 0; i < 50; i++, usleep(1000))
		CHECK(read_counter("counters/port_xmit_data") == 42);
	close(pipefd[0]);
	close(pipefd[1]);
	CHECK(fabric_read_attr("sys/class/infiniband/mlx5_0/ports/1/state", text, 64) == 10);
	CHECK(!memcmp(text, "4: ACTIVE\n", 10));
	CHECK(fabric_read_attr("sys/class/infiniband/mlx5_0/ports/1/state", text, 3) == -ENOSPC);
	CHECK(fabric_read_attr("sys/class/infiniband/mlx5_0/node_guid", text, 64) == -ENOENT);
	CHECK(fabric_read_attr("sys/class/infiniband/mlx5_9/ports/1/state", text, 64) == -ENOENT);
	CHECK(fabric_read_attr("sys/class/infiniband/mlx5_0/ports/1/gids/99999999999", text, 64) ==
	      -ENOENT);
	fabric_client_close(c);
	test_daemon_await_end();
}

static void check_attr(const char *name, const char *want)
{
	char path[96], text[64] = "";

	snprintf(path, sizeof(path), "sys/class/infiniband/mlx5_1/ports/1/%s", name);
	CHECK(fabric_read_attr(path, text, sizeof(text) - 1) == (ssize_t)strlen(want));
	CHECK(!strcmp(text, want));
}

/* A change is told once, to every process of the port's host and to no other. */
static void test_port(void)
{
	struct msg m = {.hello.host = "host2"};
	struct fabric_client *a, *b;
	uint32_t rows[SLOT_PORTS];
	const struct subnet *s;
	struct client_told here, too;
	int fds[MSG_MAX_FDS];
	uint32_t other_row;
	int other;

	a = test_client_open(&here);
	b = test_client_open(&too);
	s = fabric_subnet(a);
	CHECK(fabric_host_ports(a, rows, SLOT_PORTS) == 2);
	other = link_open(test_daemon_dir(), NULL, &m, MSG_HELLO, fds);
	CHECK(other >= 0);
	msg_close_fds(fds);
	other_row = m.hello_reply.rows[1];
	CHECK(other_row != rows[1]);

	CHECK(test_daemon_set_port(s->nports, IB_PORT_DOWN) == -ENOENT);
	CHECK(test_daemon_set_port(rows[1], IB_PORT_NOP) == -EINVAL);
	CHECK(test_daemon_set_port(rows[1], IB_PORT_INIT) == -EINVAL);
	CHECK(test_daemon_set_port(rows[1], IB_PORT_ACTIVE + 1) == -EINVAL);
	CHECK(test_daemon_set_port(rows[1], IB_PORT_ACTIVE) == 0); /* it is already */
	check_attr("phys_state", "5: LinkUp\n");

	CHECK(test_daemon_set_port(rows[1], IB_PORT_DOWN) == 0);
	CHECK(atomic_load(&s->ports[rows[1]].state) == IB_PORT_DOWN);
	CHECK(atomic_load(&s->ports[rows[0]].state) == IB_PORT_ACTIVE);
	check_attr("state", "1: DOWN\n");
	check_attr("phys_state", "2: Polling\n");
	check_attr("counters/link_downed", "1\n");
	test_client_await(&here.downs, 1);
	test_client_await(&too.downs, 1);
	CHECK(here.row == (int)rows[1]);

	CHECK(test_daemon_set_port(rows[1], IB_PORT_DOWN) == 0);
	CHECK(test_daemon_set_port(other_row, IB_PORT_DOWN) == 0);
	CHECK(test_daemon_set_port(rows[1], IB_PORT_ACTIVE) == 0);
	test_client_await(&here.ups, 1);
	test_client_await(&too.ups, 1);
	CHECK(here.downs == 1 && here.row == (int)rows[1]);
	check_attr("state", "4: ACTIVE\n");

	/* The first that the other host hears of is its own. */
	CHECK(msg_recv(other, &m, fds, 1u << MSG_NOTE, 0) == 0);
	CHECK(m.head.type == MSG_PORT && m.port.row == other_row);
	CHECK(m.port.event == IB_EVENT_PORT_ERR);
	close(other);
	fabric_client_close(b);
	fabric_client_close(a);
	test_daemon_await_end();
}

/* The parent's connection must survive a child that forgets it and ends. */
static void test_fork(void)
{
	struct fabric_client *c;
	struct client_told t;
	pid_t pid;

	c = test_client_open(&t);
	pid = fork();
	if (!pid) {
		fabric_client_forget(c);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(fabric_number_chunk(c, 0) > 0);
	CHECK(t.lost == 0);
	fabric_client_close(c);
	test_daemon_await_end();
}

static void *number_thread(void *arg)
{
	int64_t last = 0;
	int falls = -1;

	/* Fresh ones come in order; from the end of the range they go on at its beginning. */
	for (int i = 0; i < 100; i++) {
		int64_t n = fabric_number_chunk(arg, 2);

		CHECK(n > 0 && n != last);
		falls += !last || n < last;
		last = n;
	}
	CHECK(falls <= 1);
	return NULL;
}

static void test_threads(void)
{
	struct fabric_client *c;
	pthread_t thread[8];
	struct client_told t;

	c = test_client_open(&t);
	for (size_t i = 0; i < array_size(thread); i++)
		CHECK(!pthread_create(&thread[i], NULL, number_thread, c));
	for (size_t i = 0; i < array_size(thread); i++)
		CHECK(!pthread_join(thread[i], NULL));
	fabric_client_close(c);
	test_daemon_await_end();
}

static void test_refused(void)
{
	const struct fabric_client_ops ops = test_client_ops(NULL);
	struct fabric_client *c;

	/* A directory that others can write to is not taken. */
	CHECK(mkdir(test_daemon_dir(), 0700) == 0 && chmod(test_daemon_dir(), 0777) == 0);
	CHECK(fabric_client_open(&ops, &c) == -EPERM);
	CHECK(rmdir(test_daemon_dir()) == 0);
	CHECK(symlink("/tmp", test_daemon_dir()) == 0);
	CHECK(fabric_client_open(&ops, &c) < 0);
	CHECK(unlink(test_daemon_dir()) == 0);
}

int main(int argc, char **argv)
{
	test_daemon_begin(argc, argv);
	test_start_and_leave();
	/* The last to leave takes the parent with it: its name begins with softhca-. */
	test_subnet();
	test_numbers();
	test_channel();
	test_counters();
	test_port();
	test_fork();
	test_threads();
	mkdir(test_daemon_base(), 0700);
	test_refused();
	test_daemon_end();
	return 0;
}
