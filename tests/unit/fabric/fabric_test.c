// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhcad and its client library against each other: slots, numbers, channels, live attributes,
 * deaths on either side, and strangers who talk nonsense.  The argument is the daemon's path.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "fabric/client/client.h"
#include "fabric/client/link.h"
#include "fabric/rundir.h"

#define WAIT_MS 30000

static char base[] = "/tmp/softhca-test-XXXXXX";
static char dir[RUNDIR_BYTES];
static atomic_int sigchlds;

/* What a client was told. */
struct told {
	atomic_int channels, gone, lost;
	atomic_int peer, side, fd;
	atomic_int downs, ups, row;
};

static void on_channel(void *user, uint16_t peer, int fd, size_t bytes, int side)
{
	struct told *t = user;

	CHECK(bytes == FABRIC_CHANNEL_BYTES);
	t->peer = peer;
	t->side = side;
	t->fd = fd;
	t->channels++;
}

static void on_gone(void *user, uint16_t peer)
{
	struct told *t = user;

	t->peer = peer;
	t->gone++;
}

static void on_port(void *user, uint32_t row, enum ib_event event)
{
	struct told *t = user;

	t->row = (int)row;
	if (event == IB_EVENT_PORT_ERR)
		t->downs++;
	else if (event == IB_EVENT_PORT_ACTIVE)
		t->ups++;
}

static void on_lost(void *user)
{
	((struct told *)user)->lost++;
}

static struct fabric_client *open_client(struct told *t)
{
	const struct fabric_client_ops ops = {on_channel, on_gone, on_port, on_lost, t};
	struct fabric_client *c;

	memset(t, 0, sizeof(*t));
	CHECK(fabric_client_open(&ops, &c) == 0);
	return c;
}

static void wait_for(atomic_int *value, int want)
{
	for (int i = 0; i < WAIT_MS && *value != want; i++)
		usleep(1000);
	CHECK(*value == want);
}

static bool dir_exists(void)
{
	return !access(dir, F_OK);
}

static void wait_no_dir(void)
{
	for (int i = 0; i < WAIT_MS && dir_exists(); i++)
		usleep(1000);
	CHECK(!dir_exists());
}

static pid_t daemon_pid(void)
{
	struct msg m = {0};
	int fds[MSG_MAX_FDS];
	int sock = link_open(dir, NULL, &m, MSG_INFO, fds);

	CHECK(sock >= 0);
	msg_close_fds(fds);
	close(sock);
	return m.info_reply.pid;
}

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
	struct told t;

	CHECK(signal(SIGCHLD, on_sigchld) != SIG_ERR);
	c = open_client(&t);
	CHECK(sigchlds == 0);
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	CHECK(signal(SIGCHLD, SIG_DFL) != SIG_ERR);

	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2);
	CHECK(fabric_subnet(c)->ports[rows[0]].ethernet == 0);
	CHECK(fabric_subnet(c)->ports[rows[1]].ethernet == 1);
	CHECK(fabric_slots(c)[fabric_slot(c)].pid == getpid());
	fabric_client_close(c);
	wait_no_dir();
}

/* The indices agree with the rows, and no GID names two ports. */
static void test_subnet(void)
{
	const struct subnet *s;
	struct fabric_client *c;
	struct told t;

	c = open_client(&t);
	s = fabric_subnet(c);
	CHECK(s->nports == 4 && s->nnodes == 4);
	for (uint32_t i = 0; i < s->nports; i++) {
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
	wait_no_dir();
}

static void test_numbers(void)
{
	struct fabric_client *a, *b;
	const struct registry *r;
	struct told ta, tb;
	int64_t first, other;

	a = open_client(&ta);
	b = open_client(&tb);
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
	for (int i = 0; i < WAIT_MS && fabric_registry(b)->qpn_slot_plus_1[first >> 10]; i++)
		usleep(1000);
	CHECK(fabric_registry(b)->qpn_slot_plus_1[first >> 10] == 0);
	CHECK(fabric_number_chunk(b, 0) != first);
	/* All of them: then no more, and no crash. */
	while ((first = fabric_number_chunk(b, 0)) > 0)
		CHECK(first + 1023 < 0xffffff);
	CHECK(first == -ENOSPC);
	fabric_client_close(b);
	wait_no_dir();
}

static void test_channel(void)
{
	struct fabric_client *a, *b;
	struct told ta, tb;
	uint16_t slot_a;
	int fd, fd2, side;
	size_t bytes;
	char *pa, *pb;

	a = open_client(&ta);
	b = open_client(&tb);
	slot_a = fabric_slot(a);
	CHECK(fabric_open_channel(a, fabric_slot(a), &fd, &bytes, &side) == -EINVAL);
	CHECK(fabric_open_channel(a, 700, &fd, &bytes, &side) == -ENOTCONN);
	CHECK(fabric_open_channel(a, fabric_slot(b), &fd, &bytes, &side) == 0);
	CHECK(bytes == FABRIC_CHANNEL_BYTES && side == (slot_a > fabric_slot(b)));
	wait_for(&tb.channels, 1);
	CHECK(tb.peer == slot_a && tb.side == 1 - side);
	/* From the other side, the same memory. */
	CHECK(fabric_open_channel(b, slot_a, &fd2, &bytes, &side) == 0);
	pa = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pb = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd2, 0);
	CHECK(pa != MAP_FAILED && pb != MAP_FAILED && pa[bytes - 1] == 0);
	strcpy(pa, "through");
	CHECK(!strcmp(pb, "through"));
	CHECK(ftruncate(fd, 0) == -1);
	munmap(pa, bytes);
	munmap(pb, bytes);
	close(fd);
	close(fd2);
	close(tb.fd);
	fabric_client_close(a);
	wait_for(&tb.gone, 1);
	CHECK(tb.peer == slot_a);
	CHECK(fabric_open_channel(b, slot_a, &fd, &bytes, &side) == -ENOTCONN);
	fabric_client_close(b);
	wait_no_dir();
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
	struct told t, child_told;
	int pipefd[2];
	char text[64];
	pid_t pid;

	c = open_client(&t);
	CHECK(read_counter("counters/port_xmit_data") == 0);
	CHECK(read_counter("hw_counters/lifespan") == 10);
	fabric_slots(c)[fabric_slot(c)].counters[0][0][PORT_XMIT_DATA] = 5;
	CHECK(read_counter("counters/port_xmit_data") == 5);
	CHECK(pipe(pipefd) == 0);
	pid = fork();
	if (!pid) {
		struct fabric_client *mine;

		fabric_client_forget(c);
		mine = open_client(&child_told);
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
	wait_no_dir();
}

static int set_port(uint32_t row, uint32_t state)
{
	struct msg m = {.set_port = {row, state}};
	int fds[MSG_MAX_FDS];
	int sock = link_open(dir, NULL, &m, MSG_SET_PORT, fds);

	if (sock < 0)
		return sock;
	close(sock);
	return 0;
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
	struct told here, too;
	int fds[MSG_MAX_FDS];
	uint32_t far_row;
	int far;

	a = open_client(&here);
	b = open_client(&too);
	s = fabric_subnet(a);
	CHECK(fabric_host_ports(a, rows, SLOT_PORTS) == 2);
	far = link_open(dir, NULL, &m, MSG_HELLO, fds);
	CHECK(far >= 0);
	msg_close_fds(fds);
	far_row = m.hello_reply.rows[1];
	CHECK(far_row != rows[1]);

	CHECK(set_port(s->nports, IB_PORT_DOWN) == -ENOENT);
	CHECK(set_port(rows[1], IB_PORT_NOP) == -EINVAL);
	CHECK(set_port(rows[1], IB_PORT_INIT) == -EINVAL);
	CHECK(set_port(rows[1], IB_PORT_ACTIVE + 1) == -EINVAL);
	CHECK(set_port(rows[1], IB_PORT_ACTIVE) == 0); /* it is already */
	check_attr("phys_state", "5: LinkUp\n");

	CHECK(set_port(rows[1], IB_PORT_DOWN) == 0);
	CHECK(atomic_load(&s->ports[rows[1]].state) == IB_PORT_DOWN);
	CHECK(atomic_load(&s->ports[rows[0]].state) == IB_PORT_ACTIVE);
	check_attr("state", "1: DOWN\n");
	check_attr("phys_state", "2: Polling\n");
	check_attr("counters/link_downed", "1\n");
	wait_for(&here.downs, 1);
	wait_for(&too.downs, 1);
	CHECK(here.row == (int)rows[1]);

	CHECK(set_port(rows[1], IB_PORT_DOWN) == 0);
	CHECK(set_port(far_row, IB_PORT_DOWN) == 0);
	CHECK(set_port(rows[1], IB_PORT_ACTIVE) == 0);
	wait_for(&here.ups, 1);
	wait_for(&too.ups, 1);
	CHECK(here.downs == 1 && here.row == (int)rows[1]);
	check_attr("state", "4: ACTIVE\n");

	/* The first that the other host hears of is its own. */
	CHECK(msg_recv(far, &m, fds, 1u << MSG_NOTE, 0) == 0);
	CHECK(m.head.type == MSG_PORT && m.port.row == far_row);
	CHECK(m.port.event == IB_EVENT_PORT_ERR);
	close(far);
	fabric_client_close(b);
	fabric_client_close(a);
	wait_no_dir();
}

/* The parent's connection must survive a child that forgets it and ends. */
static void test_fork(void)
{
	struct fabric_client *c;
	struct told t;
	pid_t pid;

	c = open_client(&t);
	pid = fork();
	if (!pid) {
		fabric_client_forget(c);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(fabric_number_chunk(c, 0) > 0);
	CHECK(t.lost == 0);
	fabric_client_close(c);
	wait_no_dir();
}

static bool sock_exists(void)
{
	char path[sizeof(dir) + 8];

	snprintf(path, sizeof(path), "%s/sock", dir);
	return !access(path, F_OK);
}

/*
 * The daemon goes and its client stays.  The next daemon gives out other numbers: a queue pair of
 * the one may be told to connect to one of the other, and must not find itself there.
 */
static void daemon_goes(int signum)
{
	struct fabric_client *old, *new;
	struct told t, other;
	int64_t first;

	old = open_client(&t);
	first = fabric_number_chunk(old, 0);
	CHECK(first > 0);
	kill(daemon_pid(), signum);
	wait_for(&t.lost, 1);
	for (int i = 0; i < WAIT_MS && sock_exists(); i++)
		usleep(1000);
	CHECK(!sock_exists() && dir_exists());
	CHECK(fabric_number_chunk(old, 0) == -ECONNRESET);
	CHECK(fabric_registry(old)->magic == REGISTRY_MAGIC);

	new = open_client(&other);
	CHECK(fabric_number_chunk(new, 0) != first);
	fabric_client_close(old);
	CHECK(dir_exists());
	fabric_client_close(new);
	wait_no_dir();
}

static void test_daemon_killed(void)
{
	struct fabric_client *c;
	struct told t;

	daemon_goes(SIGKILL);
	daemon_goes(SIGTERM);
	/* Its client cleans up if no other daemon does. */
	c = open_client(&t);
	kill(daemon_pid(), SIGKILL);
	wait_for(&t.lost, 1);
	fabric_client_close(c);
	wait_no_dir();
}

static bool tree_exists(void)
{
	char path[sizeof(dir) + 64];

	snprintf(path, sizeof(path), "%s/hosts/host1/sys/class/infiniband/mlx5_0", dir);
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
		kill(daemon_pid(), SIGKILL);
		for (int i = 0; i < WAIT_MS && rundir_is_locked(dir); i++)
			usleep(1000);
		rundir_clear(dir);
		CHECK(!tree_exists());
		CHECK(!fabric_read_attr(".", text, sizeof(text)) && tree_exists());
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	wait_no_dir();
}

static int raw_connect(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	CHECK(sock >= 0 && !connect(sock, (struct sockaddr *)&addr, sizeof(addr)));
	return sock;
}

/* Closed on us, within the time allowed? */
static void check_cut(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	char buf[sizeof(struct msg)];
	ssize_t n;

	do {
		CHECK(poll(&p, 1, WAIT_MS) == 1);
		n = recv(sock, buf, sizeof(buf), 0);
	} while (n > 0);
	close(sock);
}

static void test_malformed(void)
{
	struct rng rng = {0x5eed};
	struct fabric_client *c;
	struct msg m = {0};
	struct told t;
	int fds[MSG_MAX_FDS];
	int sock;

	c = open_client(&t);
	for (int i = 0; i < 2000; i++) {
		uint8_t junk[sizeof(struct msg) + 64];
		size_t n = 1 + rng_below(&rng, sizeof(junk));

		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)rng_next(&rng);
		/* Half of them get past the first check. */
		if (i & 1) {
			msg_prepare(&m, (enum msg_type)rng_below(&rng, MSG_STAY), MSG_REQUEST, 7,
				    0);
			m.head.length += (uint32_t)rng_below(&rng, 3);
			memcpy(junk, &m.head, sizeof(m.head));
			n = m.head.length + (rng_below(&rng, 2) ? 0 : 8);
		}
		sock = raw_connect();
		CHECK(send(sock, junk, n, MSG_NOSIGNAL) == (ssize_t)n);
		if (i & 1)
			close(sock);
		else
			check_cut(sock);
	}
	/* Another version is told so. */
	sock = raw_connect();
	msg_prepare(&m, MSG_LEASE, MSG_REQUEST, 1, 0);
	m.head.version++;
	CHECK(send(sock, &m, m.head.length, 0) > 0);
	CHECK(msg_recv(sock, &m, fds, 1u << MSG_REPLY, 0) == 0 && m.head.status == -EPROTO);
	check_cut(sock);
	/* The others have not noticed. */
	CHECK(t.lost == 0 && fabric_number_chunk(c, 0) > 0);
	fabric_client_close(c);
	wait_no_dir();
}

static void *number_thread(void *arg)
{
	int64_t last = 0;

	for (int i = 0; i < 100; i++) {
		int64_t n = fabric_number_chunk(arg, 2);

		CHECK(n > last); /* fresh ones come in order */
		last = n;
	}
	return NULL;
}

static void test_threads(void)
{
	struct fabric_client *c;
	pthread_t thread[8];
	struct told t;

	c = open_client(&t);
	for (size_t i = 0; i < array_size(thread); i++)
		CHECK(!pthread_create(&thread[i], NULL, number_thread, c));
	for (size_t i = 0; i < array_size(thread); i++)
		CHECK(!pthread_join(thread[i], NULL));
	fabric_client_close(c);
	wait_no_dir();
}

/* Many starters, many leavers, all at once: each gets a daemon that serves it. */
static void test_races(void)
{
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 20; i++) {
			struct fabric_client *c;
			struct told t;

			if (fork())
				continue;
			usleep((unsigned)(i * 7919 % 20000));
			c = open_client(&t);
			CHECK(fabric_number_chunk(c, 0) > 0);
			fabric_client_close(c);
			_exit(0);
		}
		for (int i = 0; i < 20; i++) {
			int status;

			CHECK(wait(&status) > 0 && status == 0);
		}
		wait_no_dir();
	}
}

/* ---- descriptors and slots that run out ---- */

static int raw_hello(const char *host, uint16_t *slot)
{
	const struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	struct msg m = {0};
	int fds[MSG_MAX_FDS];
	int sock = raw_connect();

	CHECK(!setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	snprintf(m.hello.host, sizeof(m.hello.host), "%s", host);
	CHECK(link_call(sock, &m, MSG_HELLO, fds) == 0);
	msg_close_fds(fds);
	*slot = m.hello_reply.slot;
	return sock;
}

static int raw_call(int sock, struct msg *m, enum msg_type type)
{
	int fds[MSG_MAX_FDS];
	int ret = link_call(sock, m, type, fds);

	if (!ret)
		msg_close_fds(fds);
	return ret;
}

static int raw_channel(int sock, uint16_t peer)
{
	struct msg m = {.peer.peer = peer};

	return raw_call(sock, &m, MSG_CHANNEL);
}

static void limit_descriptors(pid_t pid, rlim_t n, struct rlimit *saved)
{
	struct rlimit few;

	CHECK(!prlimit(pid, RLIMIT_NOFILE, NULL, saved));
	few = *saved;
	few.rlim_cur = n;
	CHECK(!prlimit(pid, RLIMIT_NOFILE, &few, NULL));
}

/* Opens a channel to 'to' and takes its port down when told so, and tells its slot. */
static pid_t start_peer(uint16_t to, uint32_t row, int pipes[2])
{
	pid_t pid = fork();
	uint16_t slot;
	int sock;

	if (pid)
		return pid;
	close(pipes[0]);
	sock = raw_hello("host2", &slot);
	CHECK(write(pipes[1], &slot, sizeof(slot)) == sizeof(slot));
	CHECK(read(pipes[1], &slot, sizeof(slot)) == sizeof(slot));
	CHECK(raw_channel(sock, to) == 0);
	CHECK(set_port(row, IB_PORT_DOWN) == 0);
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
	struct told t;
	uint16_t slot, mate_slot;
	size_t bytes;
	pid_t peer;

	c = open_client(&t);
	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2);
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pipes));
	peer = start_peer(fabric_slot(c), rows[0], pipes);
	close(pipes[1]);
	CHECK(read(pipes[0], &slot, sizeof(slot)) == sizeof(slot));
	mate = raw_hello("host2", &mate_slot);
	top = open("/dev/null", O_RDONLY); /* the lowest number that is free */
	CHECK(top >= 0);
	close(top);
	limit_descriptors(0, (rlim_t)top, &saved);

	CHECK(write(pipes[0], &slot, sizeof(slot)) == sizeof(slot));
	/* Told after the channel. */
	wait_for(&t.downs, 1);
	CHECK(t.lost == 0 && t.channels == 0);
	CHECK(fabric_open_channel(c, slot, &fd, &bytes, &side) == -EMFILE);
	/* One of which the other end learns only. */
	CHECK(fabric_open_channel(c, mate_slot, &fd, &bytes, &side) == -EMFILE);
	CHECK(t.lost == 0 && fabric_number_chunk(c, 0) > 0);

	CHECK(!prlimit(0, RLIMIT_NOFILE, &saved, NULL));
	wait_for(&t.channels, 2);
	CHECK(t.peer == slot || t.peer == mate_slot);
	close(t.fd);
	CHECK(fabric_open_channel(c, slot, &fd, &bytes, &side) == 0);
	close(fd);
	close(pipes[0]);
	CHECK(waitpid(peer, NULL, 0) == peer);
	close(mate);
	wait_for(&t.gone, 2);
	fabric_client_close(c);
	wait_no_dir();
}

/* ---- a kernel that has no memory for a moment ---- */

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
	struct told t;

	c = open_client(&t);
	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2);
	for (unsigned i = 0; i < array_size(errors); i++) {
		/* It waits in a call already; what comes next is for the next one. */
		failing_errno = errors[i];
		failing = 3;
		CHECK(fabric_number_chunk(c, NUMBER_QPN) > 0);
		wait_for(&failing, 0);
		CHECK(fabric_number_chunk(c, NUMBER_QPN) > 0);
		CHECK(t.lost == 0);
	}
	/* It ends all the same. */
	failing_errno = ENOMEM;
	failing = INT_MAX;
	fabric_client_close(c);
	failing = 0;
	CHECK(t.lost == 0);
	wait_no_dir();
}

/* The control thread of this process: 'softhca-control', and what it waits in. */
static bool control_waits_in(long call)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;
	bool found = false;

	CHECK(tasks);
	while ((e = readdir(tasks))) {
		char path[320], text[64] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(text, sizeof(text), f) && !strcmp(text, "softhca-control\n")) {
			fclose(f);
			snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", e->d_name);
			f = fopen(path, "r");
			found |= f && fgets(text, sizeof(text), f) && atol(text) == call;
		}
		if (f)
			fclose(f);
	}
	closedir(tasks);
	return found;
}

/* Between pause and resume nothing of a message is acted upon. */
static void test_pause(void)
{
	struct fabric_client *c;
	struct told t;
	uint16_t slot;
	int peer;

	if (access("/proc/self/syscall", R_OK))
		return;
	c = open_client(&t);
	peer = raw_hello("host2", &slot);
	fabric_client_pause();
	CHECK(raw_channel(peer, fabric_slot(c)) == 0);
	for (int i = 0; i < WAIT_MS && !control_waits_in(SYS_futex); i++)
		usleep(1000);
	CHECK(control_waits_in(SYS_futex) && t.channels == 0);
	fabric_client_resume();
	wait_for(&t.channels, 1);
	close(t.fd);
	close(peer);
	fabric_client_close(c);
	wait_no_dir();
}

#define FULL_DAEMON 64

/* The daemon takes in as many as it can and tells the next one that there is no room. */
static int fill_daemon(int *idle)
{
	const struct timeval limit = {.tv_sec = WAIT_MS / 1000};

	for (int n = 0; n < FULL_DAEMON; n++) {
		struct msg m = {0};
		int ret;

		idle[n] = raw_connect();
		CHECK(!setsockopt(idle[n], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
		ret = raw_call(idle[n], &m, MSG_LEASE);
		if (!ret)
			continue;
		CHECK(ret == -EMFILE);
		check_cut(idle[n]);
		return n;
	}
	CHECK(!"the daemon has a limit");
	return 0;
}

/* More than fits into the socket of one who does not read. */
static void tell_much(int sock, uint32_t row)
{
	for (uint32_t i = 0; i < 600; i++) {
		struct msg m = {.set_port = {row, i & 1 ? IB_PORT_ACTIVE : IB_PORT_DOWN}};

		CHECK(raw_call(sock, &m, MSG_SET_PORT) == 0);
	}
}

/*
 * The daemon without a free descriptor: newcomers are told so, and one that is slow to read gets
 * its descriptors later like all else.
 */
static void test_full_daemon(void)
{
	int idle[FULL_DAEMON], fds[MSG_MAX_FDS], slow, peer, n, ret;
	struct fabric_client *c;
	uint32_t rows[SLOT_PORTS];
	uint16_t slow_slot, slot;
	struct rlimit saved;
	struct told t;
	struct msg m;

	c = open_client(&t);
	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2);
	slow = raw_hello("", &slow_slot);
	peer = raw_hello("host2", &slot);
	limit_descriptors(daemon_pid(), FULL_DAEMON, &saved);
	n = fill_daemon(idle);
	CHECK(n > 1);
	tell_much(idle[0], rows[0]);
	/* Room for the channel's memory, not for a second name of it. */
	close(idle[--n]);
	do {
		ret = raw_channel(peer, slow_slot);
	} while (ret == -EMFILE);
	CHECK(ret == 0);
	do {
		CHECK(msg_recv(slow, &m, fds, 1u << MSG_NOTE, 0) == 0);
		msg_close_fds(fds);
	} while (m.head.type != MSG_CHANNEL);
	CHECK(m.channel.peer == slot);
	CHECK(fabric_number_chunk(c, 0) > 0 && t.lost == 0);
	while (n)
		close(idle[--n]);
	close(slow);
	close(peer);
	fabric_client_close(c);
	wait_no_dir();
}

/* One that is stopped acknowledges no ends of its peers; that must not use up the slots. */
static void test_slots_of_the_dead(void)
{
	uint16_t stopped_slot, slot;
	struct fabric_client *c;
	struct told t;
	int stopped;

	c = open_client(&t);
	stopped = raw_hello("", &stopped_slot);
	for (uint32_t i = 0; i < REGISTRY_SLOTS + 10; i++) {
		int sock = raw_hello("", &slot);
		int ret = raw_channel(sock, stopped_slot);

		CHECK(ret == 0 || i > REGISTRY_SLOTS / 2);
		close(sock);
	}
	check_cut(stopped);
	CHECK(t.lost == 0 && fabric_number_chunk(c, 0) > 0);
	fabric_client_close(c);
	wait_no_dir();
}

static void test_refused(void)
{
	const struct fabric_client_ops ops = {on_channel, on_gone, on_port, on_lost, NULL};
	struct fabric_client *c;

	/* A directory that others can write to is not taken. */
	CHECK(mkdir(dir, 0700) == 0 && chmod(dir, 0777) == 0);
	CHECK(fabric_client_open(&ops, &c) == -EPERM);
	CHECK(rmdir(dir) == 0);
	CHECK(symlink("/tmp", dir) == 0);
	CHECK(fabric_client_open(&ops, &c) < 0);
	CHECK(unlink(dir) == 0);
}

int main(int argc, char **argv)
{
	if (argc != 2 || access(argv[1], X_OK))
		SKIP("the argument must be the path of softhcad");
	CHECK(mkdtemp(base));
	snprintf(dir, sizeof(dir), "%s/fabric", base);
	setenv("SOFTHCA_DIR", dir, 1);
	setenv("SOFTHCA_DAEMON", argv[1], 1);
	unsetenv("SOFTHCA_HOST");
	test_start_and_leave();
	/* The last to leave takes the parent with it: its name begins with softhca-. */
	test_subnet();
	test_numbers();
	test_channel();
	test_counters();
	test_port();
	test_fork();
	test_daemon_killed();
	test_lease_again();
	test_malformed();
	test_threads();
	test_races();
	test_no_descriptors();
	test_recv_fails();
	test_pause();
	test_full_daemon();
	test_slots_of_the_dead();
	mkdir(base, 0700);
	test_refused();
	rmdir(base);
	return 0;
}
