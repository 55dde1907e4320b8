// SPDX-License-Identifier: BSD-2-Clause
/*
 * A link with a descriptor: what arrives there wakes the engine, also after a fork, and when
 * a program has closed descriptors that it does not know.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/descriptor.h"
#include "driver/runtime/engine.h"
#include "driver/runtime/process.h"
#include "test_fabric.h"
#include "wire/link.h"
#include "wire/process.h"

#define WAIT_S 60u
#define OWNER  700u /* some process that the link leads to */

/* ---- a link that carries bytes and counts them ---- */

struct socket_link {
	struct link link;
	int far; /* the other end */
	_Atomic(uint32_t) drained;
	_Atomic(bool) ended;
};

/* As links do, by the thread that drains it. */
static void socket_end(struct socket_link *s)
{
	close(s->link.fd);
	s->link.fd = -1;
	atomic_store(&s->ended, true);
}

static bool socket_drain(struct link *l)
{
	struct socket_link *s = container_of(l, struct socket_link, link);
	char bytes[256];
	ssize_t n = l->fd < 0 ? 0 : recv(l->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (!n && l->fd >= 0)
		socket_end(s);
	if (n <= 0)
		return false;
	atomic_fetch_add(&s->drained, (uint32_t)n);
	return true;
}

static enum wire_verdict socket_xmit(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)l;
	(void)to;
	(void)p;
	return WIRE_LOST;
}

static uint32_t socket_max_payload(struct link *l, uint32_t to, bool by_reference_ok)
{
	(void)l;
	(void)to;
	(void)by_reference_ok;
	return LINK_PATH_MTU;
}

static bool socket_has_room(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)l;
	(void)to;
	(void)p;
	return true;
}

static const struct link_ops socket_ops = {
	.xmit = socket_xmit,
	.max_payload = socket_max_payload,
	.has_room = socket_has_room,
	.drain = socket_drain,
};

/* ---- a process with such a link, and no adapter ---- */

struct fed {
	struct test_fabric *fabric;
	struct socket_link socket;
	struct process process;
};

static void fed_up(struct fed *f, bool has_descriptor)
{
	struct wire_process_attr attr = {0};
	int fd[2] = {-1, -1};

	*f = (struct fed){.fabric = test_fabric_create()};
	attr.registry = f->fabric->registry;
	attr.subnet = &f->fabric->subnet;
	attr.slots = f->fabric->slots;
	CHECK(!wire_process_create(&attr, &f->process.wire_process));
	CHECK(!has_descriptor || !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	f->socket.link = (struct link){.ops = &socket_ops, .fd = fd[0]};
	f->socket.far = fd[1];
	wire_process_add_link(f->process.wire_process, &f->socket.link, OWNER, OWNER + 1);
	f->process.slot = &f->fabric->slots[0];
}

static void fed_down(struct fed *f)
{
	wire_process_destroy(f->process.wire_process);
	if (f->socket.link.fd >= 0)
		close(f->socket.link.fd);
	if (f->socket.far >= 0)
		close(f->socket.far);
	close(f->fabric->channel_fd);
}

static void send_bytes(struct fed *f, size_t n)
{
	static const char bytes[64];

	CHECK(n <= sizeof(bytes) && send(f->socket.far, bytes, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static void wait_drained(struct fed *f, uint32_t n)
{
	for (unsigned i = 0; i < WAIT_S * 1000 && atomic_load(&f->socket.drained) < n; i++)
		usleep(1000);
	CHECK(atomic_load(&f->socket.drained) == n);
}

static void wait_asleep(struct fed *f)
{
	for (unsigned i = 0;
	     i < WAIT_S * 1000 && atomic_load(&f->process.slot->driver) != SLOT_NOBODY; i++)
		usleep(1000);
	CHECK(atomic_load(&f->process.slot->driver) == SLOT_NOBODY);
}

/* ---- what there is in this program ---- */

static unsigned count_threads(const char *wanted)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;
	unsigned n = 0;

	CHECK(tasks);
	while ((e = readdir(tasks))) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (f && fgets(name, sizeof(name), f))
			n += !strcmp(name, wanted);
		if (f)
			fclose(f);
	}
	closedir(tasks);
	return n;
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < (int)HIDDEN_MAX_FDS; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static unsigned hidden_descriptors(void)
{
	unsigned n = 0;

	for (int fd = hidden_next(0, UINT32_MAX); fd >= 0;
	     fd = hidden_next((unsigned)fd + 1, UINT32_MAX))
		n++;
	return n;
}

/* ---- the tests ---- */

static void test_no_descriptor(void)
{
	struct fed f;

	fed_up(&f, false);
	CHECK(!engine_start(&f.process));
	wait_asleep(&f);
	CHECK(!count_threads("softhca-feeder\n"));
	engine_stop(&f.process);
	fed_down(&f);
}

/* Each time the engine sleeps, and nobody but the link can wake it. */
static void test_wakes(void)
{
	unsigned before, hidden;
	uint32_t sent = 0;
	struct fed f;

	fed_up(&f, true);
	before = count_descriptors();
	hidden = hidden_descriptors();
	CHECK(!engine_start(&f.process));
	CHECK(count_descriptors() == before + 2 && hidden_descriptors() == hidden + 2);
	for (unsigned i = 0; i < 200; i++) {
		wait_asleep(&f);
		send_bytes(&f, 1 + i % 40);
		sent += 1 + i % 40;
		wait_drained(&f, sent);
	}
	CHECK(count_threads("softhca-feeder\n") == 1);
	engine_stop(&f.process);
	CHECK(!count_threads("softhca-feeder\n") && !count_threads("softhca-engine\n"));
	CHECK(hidden_descriptors() == hidden && count_descriptors() == before);
	fed_down(&f);
}

/* Whatever the engine is doing when something arrives. */
static void test_any_moment(void)
{
	struct rng rng = {7};
	uint32_t sent = 0;
	struct fed f;

	fed_up(&f, true);
	send_bytes(&f, 10); /* before there is an engine */
	CHECK(!engine_start(&f.process));
	wait_drained(&f, sent = 10);
	for (unsigned i = 0; i < 3000; i++) {
		send_bytes(&f, 1);
		sent++;
		for (uint64_t n = rng_below(&rng, 4000); n; n--)
			atomic_signal_fence(memory_order_seq_cst);
		if (i % 16 == 0)
			wait_drained(&f, sent);
	}
	wait_drained(&f, sent);
	engine_stop(&f.process);
	fed_down(&f);
}

/* A child has none of the descriptors, and its end changes nothing for the parent. */
static void test_fork(void)
{
	struct fed f;
	int status;
	pid_t child;

	fed_up(&f, true);
	CHECK(!engine_start(&f.process));
	wait_asleep(&f);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		hidden_fork_child();
		CHECK(!hidden_descriptors() && !count_threads("softhca-feeder\n"));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	wait_asleep(&f);
	send_bytes(&f, 3);
	wait_drained(&f, 3);
	engine_stop(&f.process);
	fed_down(&f);
}

/* Then the engine looks by itself, and the end waits for nobody. */
static void test_closed_behind_its_back(void)
{
	uint32_t sent = 0;
	struct fed f;
	int fd;

	fed_up(&f, true);
	CHECK(!engine_start(&f.process));
	wait_asleep(&f);
	while ((fd = hidden_next(0, UINT32_MAX)) >= 0)
		CHECK(!syscall(SYS_close, fd));
	engine_kick(&f.process); /* as a timer would, some day */
	for (unsigned i = 0; i < 20; i++) {
		send_bytes(&f, 2);
		wait_drained(&f, sent += 2);
	}
	engine_stop(&f.process);
	CHECK(!count_threads("softhca-feeder\n"));
	fed_down(&f);
}

/* A link that ends takes its descriptor away. */
static void test_link_ends(void)
{
	struct fed f;

	fed_up(&f, true);
	CHECK(!engine_start(&f.process));
	wait_asleep(&f);
	close(f.socket.far);
	f.socket.far = -1;
	for (unsigned i = 0; i < WAIT_S * 1000 && !atomic_load(&f.socket.ended); i++)
		usleep(1000);
	CHECK(atomic_load(&f.socket.ended));
	wait_asleep(&f);
	engine_stop(&f.process);
	fed_down(&f);
}

static void test_no_descriptors_left(void)
{
	struct rlimit limit, none;
	unsigned hidden;
	struct fed f;

	fed_up(&f, true);
	hidden = hidden_descriptors();
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	CHECK(engine_start(&f.process) == -EMFILE && !f.process.engine);
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(!count_threads("softhca-feeder\n") && !count_threads("softhca-engine\n"));
	CHECK(hidden_descriptors() == hidden);
	CHECK(!engine_start(&f.process));
	send_bytes(&f, 1);
	wait_drained(&f, 1);
	engine_stop(&f.process);
	fed_down(&f);
}

int main(void)
{
	test_no_descriptor();
	test_wakes();
	test_any_moment();
	test_fork();
	test_closed_behind_its_back();
	test_link_ends();
	test_no_descriptors_left();
	return 0;
}
