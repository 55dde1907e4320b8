/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of a umad file whose daemon is this test: the other end of the socket, and of the
 * requests, is here.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "driver/umad/umad.h"
#include "fabric/client/link.h"
#include "prm/mad.h"
#include "test_cancel.h"

#define HEADER UMAD_HEADER_OLD
#define PLAIN  (HEADER + MAD_BYTES)
#define VENDOR 0x32

/* ---- the daemon's answers ---- */

static unsigned asked; /* how often */
static struct msg request;
static enum msg_type request_type;
static int answer; /* status */
static struct msg_umad_fetch_reply fetched;
static uint8_t fetched_bytes[4096];

int __wrap_link_open(const char *dir, const char *daemon, struct msg *m, enum msg_type type,
		     int fds[MSG_MAX_FDS]);
int __wrap_link_open(const char *dir, const char *daemon, struct msg *m, enum msg_type type,
		     int fds[MSG_MAX_FDS])
{
	(void)dir, (void)daemon;
	asked++;
	request = *m;
	request_type = type;
	if (answer)
		return answer;
	if (type == MSG_UMAD_FETCH) {
		fds[0] = memfd_create("message", MFD_CLOEXEC);
		CHECK(fds[0] >= 0 && write(fds[0], fetched_bytes, sizeof(fetched_bytes)) > 0);
		m->umad_fetch_reply = fetched;
	}
	return open("/dev/null", O_RDONLY);
}

/* ---- the file ---- */

static struct umad_page page;
static struct umad_device device;
static int program, daemon_end;

static void count_nothing(struct cdev_file *f)
{
	(void)f;
}

static const struct cdev_ops no_ops = {.last_close = count_nothing, .release = count_nothing};

static void device_begin(int flags)
{
	int pair[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	program = pair[0];
	daemon_end = pair[1];
	CHECK(!fcntl(program, F_SETFL, flags));
	memset(&page, 0, sizeof(page));
	page = (struct umad_page){
		.magic = UMAD_MAGIC, .port = 1, .gids = 8, .header_bytes = HEADER};
	page.agents[2] = UMAD_AGENT_THERE | UMAD_AGENT_QP1;
	page.agents[3] = UMAD_AGENT_THERE | UMAD_AGENT_QP1 | UMAD_AGENT_RMPP;
	page.agents[4] = UMAD_AGENT_THERE | UMAD_AGENT_QP1 | UMAD_AGENT_RMPP | UMAD_AGENT_USER_RMPP;
	page.agents[5] = UMAD_AGENT_THERE;
	memset(&device, 0, sizeof(device));
	cdev_file_init(&device.cdev, &no_ops);
	device.page = &page;
	device.token = 99;
	device.access = O_RDWR;
	CHECK(!cdev_install(program, &device.cdev));
	asked = 0;
	answer = 0;
}

static void device_end(void)
{
	cdev_table_clear(program);
	close(program);
	close(daemon_end);
}

/* ---- writes ---- */

struct sending {
	uint8_t bytes[HEADER + 2 * MAD_BYTES];
	size_t n;
};

static struct sending sending_of(uint32_t agent, unsigned class)
{
	struct sending s = {.n = PLAIN};
	struct ib_user_mad_hdr h = {.id = agent};

	memcpy(s.bytes, &h, HEADER);
	s.bytes[HEADER + MAD_AT_BASE_VERSION] = 1;
	s.bytes[HEADER + MAD_AT_CLASS] = (uint8_t) class;
	s.bytes[HEADER + MAD_AT_METHOD] = MAD_GET;
	s.bytes[HEADER + MAD_AT_TID + 7] = 42;
	return s;
}

static ssize_t program_write(const struct sending *s)
{
	return umad_write(&device.cdev, program, s->bytes, s->n);
}

static bool daemon_got(const struct sending *s)
{
	uint8_t bytes[sizeof(s->bytes)];
	ssize_t n = recv(daemon_end, bytes, sizeof(bytes), MSG_DONTWAIT);

	return n == (ssize_t)s->n && !memcmp(bytes, s->bytes, s->n);
}

static bool daemon_got_nothing(void)
{
	char c;

	return recv(daemon_end, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN && !page.sends;
}

static void test_write(void)
{
	struct sending s = sending_of(2, VENDOR);
	uint32_t place = umad_in_flight_at(42, VENDOR);

	device_begin(0);
	CHECK(program_write(&s) == PLAIN && daemon_got(&s));
	CHECK(page.sends == 1 && page.in_flight[place] == 1 && !asked);
	/* The daemon is asked only now, and says no; then, yes. */
	CHECK(program_write(&s) == PLAIN && asked == 1 && request_type == MSG_UMAD_IN_FLIGHT);
	CHECK(request.umad_in_flight.token == 99 && request.umad_in_flight.agent == 2);
	answer = -EINVAL;
	CHECK(program_write(&s) == -EINVAL && page.sends == 2);
	answer = -ENOMEM;
	CHECK(program_write(&s) == PLAIN);
	s = sending_of(4, VENDOR);
	s.bytes[HEADER + MAD_AT_RMPP_FLAGS] = MAD_RMPP_ACTIVE;
	asked = 0;
	CHECK(program_write(&s) == PLAIN && !asked);
	device_end();
}

/* In the kernel's order; nothing of it reaches the daemon. */
static void test_write_refused(void)
{
	struct sending s = sending_of(2, VENDOR);
	uint8_t *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	device_begin(0);
	CHECK(two != MAP_FAILED && !munmap(two + 4096, 4096));
	s.n = HEADER + MAD_RMPP_BYTES - 1;
	CHECK(program_write(&s) == -EINVAL);
	CHECK(umad_write(&device.cdev, program, two + 4096, PLAIN) == -EFAULT);
	CHECK(umad_write(&device.cdev, program, NULL, PLAIN) == -EFAULT);
	s = sending_of(32, VENDOR);
	CHECK(program_write(&s) == -EINVAL);
	s = sending_of(0, VENDOR);
	CHECK(program_write(&s) == -EIO);
	s = sending_of(2, VENDOR);
	s.bytes[offsetof(struct ib_user_mad_hdr, sl)] = 16;
	CHECK(program_write(&s) == -EINVAL);
	s.bytes[offsetof(struct ib_user_mad_hdr, sl)] = 0;
	s.bytes[offsetof(struct ib_user_mad_hdr, gid_index)] = 8;
	s.bytes[offsetof(struct ib_user_mad_hdr, grh_present)] = 1;
	CHECK(program_write(&s) == -EINVAL);
	s = sending_of(3, MAD_CLASS_SA);
	s.n = HEADER + 55;
	CHECK(program_write(&s) == -EINVAL);
	s = sending_of(2, VENDOR);
	s.n = PLAIN + 1;
	CHECK(program_write(&s) == -EINVAL); /* RMPP is not active */
	s.bytes[HEADER + MAD_AT_RMPP_FLAGS] = MAD_RMPP_ACTIVE;
	CHECK(program_write(&s) == -EINVAL); /* not this agent's */
	s = sending_of(3, MAD_CLASS_PERF);
	CHECK(program_write(&s) == -EINVAL); /* no class of RMPP */
	/* the end of the message is not there */
	s = sending_of(2, VENDOR);
	memcpy(two + 4096 - 200, s.bytes, 200);
	CHECK(umad_write(&device.cdev, program, two + 4096 - 200, PLAIN) == -EFAULT);
	page.sends = UMAD_MOST_SENDS;
	CHECK(program_write(&s) == -ENOMEM);
	page.sends = 0;
	page.gone = 1;
	CHECK(program_write(&s) == -EIO);
	device.access = O_RDONLY;
	CHECK(program_write(&s) == -EBADF);
	CHECK(daemon_got_nothing());
	munmap(two, 4096);
	device_end();
}

static void test_write_directed(void)
{
	struct sending s = sending_of(5, MAD_CLASS_SMP_DIRECTED);
	uint8_t *mad = s.bytes + HEADER;

	device_begin(0);
	mad_put16(mad, MAD_AT_DR_SLID, MAD_LID_PERMISSIVE);
	mad_put16(mad, MAD_AT_DR_DLID, MAD_LID_PERMISSIVE);
	CHECK(program_write(&s) == PLAIN &&
	      daemon_got(&s)); /* as it was: the pointer is the daemon's */
	mad[MAD_AT_HOP_COUNT] = 1;
	mad[MAD_AT_DR_INITIAL + 1] = 2;
	mad[MAD_AT_TID + 7] = 43;
	CHECK(program_write(&s) == -EINVAL);
	mad[MAD_AT_DR_INITIAL + 1] = 1;
	CHECK(program_write(&s) == PLAIN && daemon_got(&s));
	device_end();
}

static void test_write_long(void)
{
	const size_t n = UMAD_INLINE_BYTES + 12345;
	struct sending s = sending_of(3, VENDOR);
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct umad_marker marker;
	struct iovec iov = {&marker, sizeof(marker)};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.buf,
			    .msg_controllen = sizeof(control.buf)};
	uint8_t *bytes = calloc(1, n), *copy = malloc(n);
	struct stat st;
	int fd;

	device_begin(0);
	s.bytes[HEADER + MAD_AT_RMPP_FLAGS] = MAD_RMPP_ACTIVE;
	memcpy(bytes, s.bytes, PLAIN);
	bytes[n - 1] = 77;
	CHECK(umad_write(&device.cdev, program, bytes, n) == (ssize_t)n && page.sends == 1);
	CHECK(recvmsg(daemon_end, &mh, 0) == sizeof(marker) && marker.magic == UMAD_MAGIC);
	CHECK(marker.length == n && !marker.id && mh.msg_controllen);
	memcpy(&fd, CMSG_DATA(&control.align), sizeof(fd));
	CHECK(!fstat(fd, &st) && st.st_size == (off_t)n && pread(fd, copy, n, 0) == (ssize_t)n);
	CHECK(!memcmp(copy, bytes, n));
	CHECK(ftruncate(fd, 0) < 0 && pwrite(fd, copy, 1, 0) < 0);
	close(fd);
	free(bytes);
	free(copy);
	device_end();
}

static void *program_writes(void *sending)
{
	void *result;

	pthread_cleanup_push(cancelled_stack_clear, NULL);
	result = program_write(sending) == PLAIN ? sending : NULL;
	pthread_cleanup_pop(0);
	return result;
}

/* A program whose daemon lags waits, O_NONBLOCK or not, and may be cancelled. */
static void test_write_waits(void)
{
	struct sending s = sending_of(2, VENDOR);
	pthread_t thread;
	uint32_t sends;
	void *result;

	for (int cancelled = 0; cancelled < 2; cancelled++) {
		device_begin(O_NONBLOCK);
		while (send(program, &s, PLAIN, MSG_DONTWAIT) == PLAIN)
			;
		CHECK(!pthread_create(&thread, NULL, program_writes, &s));
		if (cancelled) {
			CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result));
			CHECK(result == PTHREAD_CANCELED);
		} else {
			while (recv(daemon_end, s.bytes + PLAIN, 1, MSG_DONTWAIT) > 0)
				;
			CHECK(!pthread_join(thread, &result) && result == &s);
		}
		sends = page.sends;
		CHECK(sends == !cancelled &&
		      page.in_flight[umad_in_flight_at(42, VENDOR)] == sends);
		device_end();
	}
}

/* ---- reads ---- */

static void daemon_posts(size_t n)
{
	uint8_t bytes[PLAIN];

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i + n);
	CHECK(send(daemon_end, bytes, n, 0) == (ssize_t)n);
}

static ssize_t program_read(void *buf, size_t n)
{
	return umad_read(&device.cdev, program, buf, n);
}

static void test_read(void)
{
	uint8_t buf[PLAIN + 10] = {0};

	device_begin(O_NONBLOCK);
	CHECK(program_read(buf, HEADER - 1) == -EINVAL && program_read(buf, PLAIN) == -EAGAIN);
	daemon_posts(PLAIN);
	daemon_posts(HEADER + 24);
	daemon_posts(120);
	CHECK(program_read(buf, HEADER) == -EINVAL && program_read(buf, PLAIN - 1) == -EINVAL);
	CHECK(program_read(NULL, PLAIN) == -EFAULT);
	CHECK(program_read(buf, PLAIN) == PLAIN && buf[1] == (uint8_t)(PLAIN + 1));
	CHECK(program_read(buf, HEADER + 23) == -EINVAL);
	CHECK(program_read(NULL, HEADER + 24) == -EFAULT);
	memset(buf, 0xee, sizeof(buf));
	CHECK(program_read(buf, HEADER + 24) == HEADER + 24 && buf[HEADER + 24] == 0xee);
	CHECK(buf[HEADER + 23] == (uint8_t)(HEADER + 23 + HEADER + 24));
	CHECK(program_read(buf, sizeof(buf)) == 120 && program_read(buf, PLAIN) == -EAGAIN);
	device.access = O_WRONLY;
	CHECK(program_read(buf, PLAIN) == -EBADF && !asked);
	device_end();
}

static void daemon_posts_marker(uint32_t id)
{
	const struct umad_marker m = {UMAD_MAGIC, id, 1000};

	CHECK(send(daemon_end, &m, sizeof(m), 0) == sizeof(m));
}

static void test_read_long(void)
{
	uint8_t buf[1000];

	device_begin(O_NONBLOCK);
	for (size_t i = 0; i < sizeof(fetched_bytes); i++)
		fetched_bytes[i] = (uint8_t)(i * 3);
	page.longs = 1;
	daemon_posts_marker(7);
	daemon_posts(PLAIN);
	CHECK(program_read(buf, PLAIN - 1) == -EINVAL && !asked);
	fetched = (struct msg_umad_fetch_reply){.length = sizeof(buf), .kept = 1};
	memset(buf, 0xee, sizeof(buf));
	CHECK(program_read(buf, 999) == -ENOSPC && request_type == MSG_UMAD_FETCH);
	CHECK(request.umad_fetch.id == 7 && request.umad_fetch.room == 999);
	CHECK(!memcmp(buf, fetched_bytes, PLAIN) && buf[PLAIN] == 0xee);
	/* it is the same one the next time, and what came behind it comes behind it */
	fetched.kept = 0;
	CHECK(program_read(buf, sizeof(buf)) == sizeof(buf) && request.umad_fetch.id == 7);
	CHECK(!memcmp(buf, fetched_bytes, sizeof(buf)));
	page.longs = 0;
	CHECK(program_read(buf, PLAIN) == PLAIN);
	CHECK(program_read(buf, PLAIN) == -EAGAIN);
	/* another reader has it and does not take its marker away */
	daemon_posts_marker(8);
	daemon_posts(120);
	answer = -ENOENT;
	CHECK(program_read(buf, sizeof(buf)) == 120);
	device_end();
}

/* The program has no memory for a message that it has fetched: the file goes back. */
static void test_read_long_returned(void)
{
	uint8_t *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	uint8_t back[200], got[1000];
	struct iovec iov = {back, sizeof(back)};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.buf,
			    .msg_controllen = sizeof(control.buf)};
	struct umad_marker marker;
	int fd;

	CHECK(two != MAP_FAILED && !munmap(two + 4096, 4096));
	device_begin(O_NONBLOCK);
	for (size_t i = 0; i < sizeof(fetched_bytes); i++)
		fetched_bytes[i] = (uint8_t)(i * 5);
	fetched = (struct msg_umad_fetch_reply){.length = sizeof(got)};
	page.longs = 1;
	daemon_posts_marker(7);
	CHECK(program_read(two + 3500, sizeof(got)) == -EFAULT);
	CHECK(recvmsg(daemon_end, &mh, MSG_DONTWAIT) == sizeof(marker) && mh.msg_controllen);
	memcpy(&marker, back, sizeof(marker));
	CHECK(marker.id == UMAD_RETURNED && marker.length == sizeof(got));
	memcpy(&fd, CMSG_DATA(&control.align), sizeof(fd));
	CHECK(pread(fd, got, sizeof(got), 0) == sizeof(got) &&
	      !memcmp(got, fetched_bytes, sizeof(got)));
	close(fd);
	munmap(two, 4096);
	page.longs = 0;
	device_end();
}

/* The program has no descriptor left, or one: a long message stays until it has two, as does its marker. */
static void test_read_long_full(void)
{
	struct rlimit before, now;
	uint8_t buf[1000];
	int spare[2];

	device_begin(O_NONBLOCK);
	fetched = (struct msg_umad_fetch_reply){.length = sizeof(buf)};
	page.longs = 1;
	daemon_posts_marker(7);
	spare[0] = dup(0);
	spare[1] = dup(0);
	CHECK(spare[0] >= 0 && spare[1] > spare[0] && !getrlimit(RLIMIT_NOFILE, &before));
	now = (struct rlimit){(rlim_t)spare[1] + 1, before.rlim_max};
	CHECK(!setrlimit(RLIMIT_NOFILE, &now));
	for (int i = 1; i >= 0; i--) {
		CHECK(program_read(buf, sizeof(buf)) == -EMFILE && !asked);
		CHECK(!close(spare[i]));
	}
	CHECK(program_read(buf, sizeof(buf)) == sizeof(buf) && request.umad_fetch.id == 7);
	CHECK(!memcmp(buf, fetched_bytes, sizeof(buf)) && !setrlimit(RLIMIT_NOFILE, &before));
	page.longs = 0;
	CHECK(program_read(buf, sizeof(buf)) == -EAGAIN);
	device_end();
}

/* Memory that ends within the longest message. */
static void test_read_edge(void)
{
	uint8_t *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *buf = two + 4096 - 100, all[PLAIN];

	CHECK(two != MAP_FAILED && !munmap(two + 4096, 4096));
	device_begin(O_NONBLOCK);
	daemon_posts(PLAIN);
	daemon_posts(90);
	CHECK(program_read(buf, PLAIN) == -EFAULT);
	CHECK(program_read(all, PLAIN) == PLAIN && all[1] == (uint8_t)(PLAIN + 1));
	CHECK(program_read(buf, PLAIN) == 90 && buf[1] == 91);
	CHECK(program_read(all, PLAIN) == -EAGAIN);
	munmap(two, 4096);
	device_end();
}

/* A long message comes just after the page has said that there is none. */
static void test_read_long_late(void)
{
	struct {
		struct umad_marker returned, of_message;
	} back;
	uint8_t buf[1000];

	device_begin(O_NONBLOCK);
	fetched = (struct msg_umad_fetch_reply){.length = sizeof(buf), .kept = 1};
	daemon_posts_marker(9);
	CHECK(program_read(buf, 999) == -ENOSPC && request_type == MSG_UMAD_IN_FLIGHT);
	CHECK(recv(daemon_end, &back, sizeof(back), MSG_DONTWAIT) == sizeof(back));
	CHECK(back.returned.magic == UMAD_MAGIC && back.returned.id == UMAD_RETURNED);
	CHECK(back.returned.length == sizeof(back.of_message));
	CHECK(back.of_message.magic == UMAD_MAGIC && back.of_message.id == 9);
	/* the daemon sends it again */
	fetched.kept = 0;
	page.longs = 1;
	daemon_posts_marker(9);
	CHECK(program_read(buf, sizeof(buf)) == sizeof(buf) && request.umad_fetch.id == 9);
	CHECK(!memcmp(buf, fetched_bytes, sizeof(buf)) && daemon_got_nothing());
	device_end();
}

/* The daemon has gone. */
static void test_gone(void)
{
	uint8_t buf[PLAIN];
	struct sending s = sending_of(2, VENDOR);
	struct timespec before, after;

	device_begin(0);
	CHECK(!close(daemon_end) && program_write(&s) == -EIO && page.gone && !page.sends);
	CHECK(program_read(buf, PLAIN) == -EIO && program_write(&s) == -EIO);
	device_end();
	device_begin(0);
	daemon_posts(PLAIN);
	CHECK(!close(daemon_end) && program_read(buf, PLAIN) == PLAIN);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	for (int i = 0; i < 20; i++)
		CHECK(program_read(buf, PLAIN) == -EIO);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	/* 18 of them rested for 20 ms each */
	CHECK(after.tv_sec - before.tv_sec < 2);
	CHECK(device.failures == 20 && page.gone);
	device_end();
}

#define READERS 4
#define EACH	500

static _Atomic(int) seen[READERS * EACH];

static void *program_reads(void *small)
{
	uint8_t buf[PLAIN];

	for (;;) {
		ssize_t n = program_read(buf, small ? 100 : PLAIN);
		uint32_t number;

		if (n < 0)
			return n == -EIO ? NULL : small;
		memcpy(&number, buf, sizeof(number));
		if (number >= READERS * EACH)
			return small;
		atomic_fetch_add(&seen[number], 1);
	}
}

/* Several threads read, some of them with little room: each message goes to one of them. */
static void test_many_readers(void)
{
	pthread_t threads[READERS];
	uint8_t bytes[100] = {0};
	void *result;

	device_begin(0);
	for (uintptr_t i = 0; i < READERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, program_reads, (void *)(i % 2)));
	for (uint32_t i = 0; i < READERS * EACH; i++) {
		memcpy(bytes, &i, sizeof(i));
		CHECK(send(daemon_end, bytes, sizeof(bytes), 0) == sizeof(bytes));
	}
	shutdown(daemon_end, SHUT_WR);
	for (unsigned i = 0; i < READERS; i++)
		CHECK(!pthread_join(threads[i], &result) && !result);
	for (unsigned i = 0; i < READERS * EACH; i++)
		CHECK_SAY(seen[i] == 1, "message %u: %d times", i, seen[i]);
	device_end();
}

int main(void)
{
	CHECK(!setenv("SOFTHCA_DIR", "/tmp", 1));
	/* Once without our handler of faults. */
	test_write_refused();
	test_read();
	test_read_edge();
	user_guard();
	test_write();
	test_write_refused();
	test_write_directed();
	test_write_long();
	test_write_waits();
	test_read();
	test_read_edge();
	test_read_long();
	test_read_long_returned();
	test_read_long_full();
	test_read_long_late();
	test_gone();
	test_many_readers();
	return 0;
}
