// SPDX-License-Identifier: BSD-2-Clause
/* Memory that the kernel has a hold of by itself: pinned for later input and output, or faulting to
 * the program. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>

#include "host.h"

enum { OLD = 0x11, NEW = 0x22, PEER = 0x33, FILE_VALUE = 0x44 };

#define FIXED_BYTES 65536u /* what a pipe takes */
#define AIO_READS   8u
#define AIO_BYTES   (HOST_BYTES / AIO_READS)

/* ---- io_uring ---- */

struct uring {
	int fd;
	struct io_uring_params params;
	uint8_t *ring;
	struct io_uring_sqe *entries;
	unsigned posted, taken;
};

static unsigned *ring_word(const struct uring *u, uint32_t offset)
{
	return (unsigned *)(void *)(u->ring + offset);
}

static void uring_open(struct uring *u, void *buffer)
{
	struct iovec fixed = {buffer, FIXED_BYTES};
	size_t bytes;

	*u = (struct uring){0};
	u->fd = (int)syscall(SYS_io_uring_setup, 4, &u->params);
	if (u->fd < 0)
		host_skip("io_uring: %s", strerror(errno));
	host_want(u->params.features & IORING_FEAT_SINGLE_MMAP, "an old io_uring");
	bytes = u->params.cq_off.cqes + u->params.cq_entries * sizeof(struct io_uring_cqe);
	if (bytes < u->params.sq_off.array + u->params.sq_entries * 4)
		bytes = u->params.sq_off.array + u->params.sq_entries * 4;
	u->ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, u->fd,
		       IORING_OFF_SQ_RING);
	u->entries = mmap(NULL, u->params.sq_entries * sizeof(*u->entries), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, u->fd, IORING_OFF_SQES);
	if (u->ring == MAP_FAILED || u->entries == MAP_FAILED)
		device_die("the rings: %m");
	if (syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_BUFFERS, &fixed, 1))
		host_skip("fixed buffers: %s", strerror(errno));
}

static void uring_post(struct uring *u, int opcode, int fd, void *buffer)
{
	unsigned at = u->posted % u->params.sq_entries;

	u->entries[at] = (struct io_uring_sqe){
		.opcode = (uint8_t)opcode,
		.fd = fd,
		.addr = (uintptr_t)buffer,
		.len = FIXED_BYTES,
		.user_data = u->posted,
	};
	ring_word(u, u->params.sq_off.array)[at] = at;
	__atomic_store_n(ring_word(u, u->params.sq_off.tail), ++u->posted, __ATOMIC_RELEASE);
	host_want(syscall(SYS_io_uring_enter, u->fd, 1, 0, 0, NULL, 0) == 1, "io_uring_enter: %m");
}

static void uring_wait(struct uring *u)
{
	const struct io_uring_cqe *cqes =
		(const struct io_uring_cqe *)(const void *)(u->ring + u->params.cq_off.cqes);
	const struct io_uring_cqe *cqe = &cqes[u->taken % u->params.cq_entries];

	while (__atomic_load_n(ring_word(u, u->params.cq_off.tail), __ATOMIC_ACQUIRE) == u->taken)
		syscall(SYS_io_uring_enter, u->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	host_want(cqe->res == (int)FIXED_BYTES, "io_uring did %d of %u bytes", cqe->res,
		  FIXED_BYTES);
	__atomic_store_n(ring_word(u, u->params.cq_off.head), ++u->taken, __ATOMIC_RELEASE);
}

struct tube {
	int in, out; /* what is written to `in` comes from `out` */
};

static struct tube tube_open(void)
{
	int ends[2];

	if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, 4 * FIXED_BYTES) < 0)
		device_die("pipe: %m");
	return (struct tube){ends[1], ends[0]};
}

static void tube_fill(const struct tube *t, int value)
{
	uint8_t *bytes = host_map(FIXED_BYTES, value);

	host_want(write(t->in, bytes, FIXED_BYTES) == (ssize_t)FIXED_BYTES, "write: %m");
	munmap(bytes, FIXED_BYTES);
}

static void tube_want(const struct tube *t, int value)
{
	uint8_t *bytes = host_map(FIXED_BYTES, ~value);

	for (size_t got = 0; got < FIXED_BYTES;) {
		ssize_t n = read(t->out, bytes + got, FIXED_BYTES - got);

		host_want(n > 0, "read: %m");
		got += (size_t)n;
	}
	host_want_all(bytes, FIXED_BYTES, value, "what the kernel wrote from the fixed buffer");
	munmap(bytes, FIXED_BYTES);
}

/* The kernel's pages, the program's and the peer's are the same ones. */
static void kernel_turn(struct host *h, struct uring *u, const struct tube *t, uint8_t *at,
			const struct ibv_mr *mr)
{
	uring_post(u, IORING_OP_READ_FIXED, t->out, at);
	tube_fill(t, FILE_VALUE);
	uring_wait(u);
	host_want_all(at, FIXED_BYTES, FILE_VALUE, "what the kernel read");
	if (mr) {
		struct peer_answer a = peer_read(&h->peer, at, mr->rkey, FIXED_BYTES, FILE_VALUE);

		host_want(!a.status && !a.wrong, "the peer sees other bytes than the kernel read");
		host_exchange(h, at, mr, FIXED_BYTES, PEER);
	} else {
		memset(at, PEER, FIXED_BYTES);
	}
	uring_post(u, IORING_OP_WRITE_FIXED, t->in, at);
	uring_wait(u);
	tube_want(t, PEER);
}

static void fixed_first(struct host *h)
{
	uint8_t *at = host_map(FIXED_BYTES, OLD);
	struct tube t = tube_open();
	struct ibv_mr *mr;
	struct uring u;

	uring_open(&u, at);
	/* Under way while the memory is registered. */
	uring_post(&u, IORING_OP_READ_FIXED, t.out, at);
	mr = host_reg(h, at, FIXED_BYTES);
	tube_fill(&t, NEW);
	uring_wait(&u);
	host_want_all(at, FIXED_BYTES, NEW, "what the kernel read meanwhile");
	kernel_turn(h, &u, &t, at, mr);
	host_dereg(mr);
	kernel_turn(h, &u, &t, at, NULL);
}

static void fixed_later(struct host *h)
{
	uint8_t *at = host_map(FIXED_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, FIXED_BYTES);
	struct tube t = tube_open();
	struct uring u;

	host_exchange(h, at, mr, FIXED_BYTES, PEER);
	uring_open(&u, at);
	kernel_turn(h, &u, &t, at, mr);
	/* Under way while the memory is deregistered. */
	uring_post(&u, IORING_OP_READ_FIXED, t.out, at);
	host_dereg(mr);
	tube_fill(&t, NEW);
	uring_wait(&u);
	host_want_all(at, FIXED_BYTES, NEW, "what the kernel read meanwhile");
	kernel_turn(h, &u, &t, at, NULL);
	host_want_private(at, FIXED_BYTES, "a fixed buffer that is deregistered");
}

/* ---- AIO past the page cache ---- */

static int direct_file(void)
{
	char name[] = "softhca-aio.XXXXXX", other[] = "/var/tmp/softhca-aio.XXXXXX";
	char *path = name;
	int fd = mkstemp(name), direct;
	uint8_t *bytes = host_map(HOST_BYTES, FILE_VALUE);

	if (fd < 0)
		fd = mkstemp(path = other);
	if (fd < 0)
		host_skip("no place for a file: %s", strerror(errno));
	host_want(write(fd, bytes, HOST_BYTES) == (ssize_t)HOST_BYTES && !fsync(fd), "write: %m");
	munmap(bytes, HOST_BYTES);
	direct = open(path, O_RDONLY | O_DIRECT);
	unlink(path);
	close(fd);
	if (direct < 0)
		host_skip("O_DIRECT: %s", strerror(errno));
	return direct;
}

static aio_context_t aio_post(int fd, uint8_t *at)
{
	static struct iocb blocks[AIO_READS];
	struct iocb *list[AIO_READS];
	aio_context_t context = 0;

	if (syscall(SYS_io_setup, AIO_READS, &context))
		host_skip("AIO: %s", strerror(errno));
	for (unsigned i = 0; i < AIO_READS; i++) {
		blocks[i] = (struct iocb){
			.aio_lio_opcode = IOCB_CMD_PREAD,
			.aio_fildes = (uint32_t)fd,
			.aio_buf = (uintptr_t)at + i * AIO_BYTES,
			.aio_nbytes = AIO_BYTES,
			.aio_offset = i * AIO_BYTES,
		};
		list[i] = &blocks[i];
	}
	host_want(syscall(SYS_io_submit, context, AIO_READS, list) == AIO_READS, "io_submit: %m");
	return context;
}

static void aio_wait(aio_context_t context)
{
	struct io_event events[AIO_READS];

	host_want(syscall(SYS_io_getevents, context, AIO_READS, AIO_READS, events, NULL) ==
			  AIO_READS,
		  "io_getevents: %m");
	for (unsigned i = 0; i < AIO_READS; i++)
		host_want(events[i].res == AIO_BYTES, "AIO did %ld of %u bytes",
			  (long)events[i].res, AIO_BYTES);
	syscall(SYS_io_destroy, context);
}

static void aio_case(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	int fd = direct_file();
	struct ibv_mr *mr;

	for (int i = 0; i < 4; i++) {
		aio_context_t context;
		struct peer_answer a;

		memset(at, OLD, HOST_BYTES);
		context = aio_post(fd, at);
		mr = host_reg(h, at, HOST_BYTES);
		aio_wait(context);
		host_want_all(at, HOST_BYTES, FILE_VALUE, "what AIO read beside registration");
		a = peer_read(&h->peer, at, mr->rkey, HOST_BYTES, FILE_VALUE);
		host_want(!a.status && !a.wrong, "the peer sees other bytes than AIO read");
		host_exchange(h, at, mr, HOST_BYTES, PEER);
		context = aio_post(fd, at);
		host_dereg(mr);
		aio_wait(context);
		host_want_all(at, HOST_BYTES, FILE_VALUE, "what AIO read beside deregistration");
	}
	close(fd);
}

/* ---- faults that the program serves ---- */

struct server {
	int fd;
	uint8_t *page;
	unsigned long served;
};

static void *serve_faults(void *arg)
{
	struct server *s = arg;
	struct uffd_msg msg;

	while (read(s->fd, &msg, sizeof(msg)) == (ssize_t)sizeof(msg)) {
		struct uffdio_copy copy = {
			.dst = msg.arg.pagefault.address & ~(HOST_PAGE - 1ull),
			.src = (uintptr_t)s->page,
			.len = HOST_PAGE,
		};

		if (msg.event != UFFD_EVENT_PAGEFAULT)
			continue;
		if (ioctl(s->fd, UFFDIO_COPY, &copy) && errno != EEXIST)
			device_die("UFFDIO_COPY: %m");
		s->served++;
	}
	return NULL;
}

static uint8_t *served_memory(struct server *s, int flags)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	uint8_t *at =
		mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	s->page = host_map(HOST_PAGE, FILE_VALUE);
	s->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | flags);
	if (s->fd < 0 || ioctl(s->fd, UFFDIO_API, &api))
		host_skip("userfaultfd: %s", strerror(errno));
	range.range.start = (uintptr_t)at;
	range.range.len = HOST_BYTES;
	if (at == MAP_FAILED || ioctl(s->fd, UFFDIO_REGISTER, &range))
		device_die("UFFDIO_REGISTER: %m");
	if (pthread_create(&thread, NULL, serve_faults, s))
		device_die("no thread");
	return at;
}

/* Each page is filled by the program when it is first touched, whoever touches it. */
static void served_faults(struct host *h, int flags)
{
	struct server s = {0};
	uint8_t *at = served_memory(&s, flags);
	struct ibv_mr *mr = ibv_reg_mr(h->side.pd, at, HOST_BYTES, SIDE_ACCESS);
	struct peer_answer a;

	/* A device that pins pages fails where the kernel's own faults are not served. */
	if (!mr && flags && errno == EFAULT)
		return;
	host_want(mr, "ibv_reg_mr: %m");
	a = peer_read(&h->peer, at, mr->rkey, HOST_BYTES / 2, FILE_VALUE);
	host_want(!a.status && !a.wrong, "the peer reads %lu wrong bytes: %s",
		  (unsigned long)a.wrong, ibv_wc_status_str((enum ibv_wc_status)a.status));
	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_want(!madvise(at, HOST_BYTES, MADV_DONTNEED), "MADV_DONTNEED: %m");
	host_exchange(h, at + HOST_PAGE / 2, mr, HOST_BYTES / 2, NEW);
	host_want_all(at, HOST_PAGE / 2, FILE_VALUE, "the page before what was written");
	host_want_all(at + HOST_PAGE / 2 + HOST_BYTES / 2, HOST_BYTES / 2 - HOST_PAGE / 2,
		      FILE_VALUE, "what was not written");
	host_messages(h, at, mr);
	host_dereg(mr);
	host_want(!madvise(at, HOST_BYTES, MADV_DONTNEED), "MADV_DONTNEED: %m");
	host_want_all(at, HOST_BYTES, FILE_VALUE, "deregistered memory");
}

static void served_all(struct host *h)
{
	served_faults(h, 0);
}

static void served_user(struct host *h)
{
	served_faults(h, UFFD_USER_MODE_ONLY);
}

/* The program begins to serve the faults of memory that is registered already. */
static void served_later(struct host *h)
{
	struct server s = {.page = host_map(HOST_PAGE, FILE_VALUE)};
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);
	struct peer_answer a;
	pthread_t thread;

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	s.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (s.fd < 0 || ioctl(s.fd, UFFDIO_API, &api))
		host_skip("userfaultfd: %s", strerror(errno));
	range.range.start = (uintptr_t)at;
	range.range.len = HOST_BYTES;
	host_want(!ioctl(s.fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER: %m");
	if (pthread_create(&thread, NULL, serve_faults, &s))
		device_die("no thread");
	host_want(!madvise(at, HOST_BYTES, MADV_DONTNEED), "MADV_DONTNEED: %m");
	a = peer_read(&h->peer, at, mr->rkey, HOST_BYTES, FILE_VALUE);
	host_want(!a.status && !a.wrong, "the peer reads %lu wrong bytes: %s",
		  (unsigned long)a.wrong, ibv_wc_status_str((enum ibv_wc_status)a.status));
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_dereg(mr);
}

/* A program that serves the faults of some of its memory forks: the child gets its copy of other
 * memory, which is registered. */
static void served_forks(struct host *h)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	uint8_t *at = host_map(HOST_BYTES, OLD), *other = host_map(HOST_PAGE, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), status;
	pid_t child;

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		host_skip("userfaultfd: %s", strerror(errno));
	range.range.start = (uintptr_t)other;
	range.range.len = HOST_PAGE;
	host_want(!ioctl(fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER: %m");
	host_exchange(h, at, mr, HOST_BYTES, PEER);
	child = fork();
	if (!child)
		_exit(side_not(at, HOST_BYTES, PEER) != 0);
	host_want(child > 0 && waitpid(child, &status, 0) == child && !status,
		  "the child has other bytes");
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_dereg(mr);
}

const struct host_case kernel_cases[] = {
	{"io_uring buffers before registration", fixed_first, NULL},
	{"io_uring buffers after registration", fixed_later, NULL},
	{"AIO", aio_case, NULL},
	{"userfaultfd", served_all, NULL},
	{"userfaultfd, user mode only", served_user, NULL},
	{"userfaultfd after registration", served_later, NULL},
	{"userfaultfd, fork", served_forks, NULL},
	{NULL, NULL, NULL},
};
