// SPDX-License-Identifier: BSD-2-Clause
/* The file that long messages lie in: filled again when nobody has it, and never before. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hidden.h"
#include "check.h"
#include "driver/umad/device.h"

#define LONG  (100u << 10)
#define MUCH  (3u << 20)
#define MOST  (16u << 20)
#define TURNS 200u

static uint8_t bytes[MOST + 1], found[MOST + 1];

static void bytes_make(size_t n, uint8_t seed)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

static int message_make(size_t n, uint8_t seed)
{
	int fd;

	bytes_make(n, seed);
	fd = umad_message_file(bytes, n);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	return fd;
}

static void message_check(int fd, size_t n, uint8_t seed)
{
	struct stat st;

	bytes_make(n, seed);
	CHECK(!fstat(fd, &st) && (size_t)st.st_size >= n);
	CHECK(pread(fd, found, n, st.st_size - (off_t)n) == (ssize_t)n && !memcmp(found, bytes, n));
}

static uint64_t message_end(int fd, size_t n, uint8_t seed)
{
	uint64_t id = hidden_id(fd);

	message_check(fd, n, seed);
	CHECK(!close(fd));
	return id;
}

/* The reader can neither change it nor have it shrink below what it has mapped. */
static void test_is_fixed(void)
{
	int fd = message_make(LONG, 1);
	int seals = fcntl(fd, F_GET_SEALS);

	CHECK((seals & (F_SEAL_SHRINK | F_SEAL_GROW)) == (F_SEAL_SHRINK | F_SEAL_GROW));
	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EBADF);
	CHECK(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK(ftruncate(fd, 0));
	message_end(fd, LONG, 1);
}

static void test_again(void)
{
	uint64_t id = message_end(message_make(LONG, 2), LONG, 2);

	CHECK(message_end(message_make(LONG - 1, 3), LONG - 1, 3) == id);
	CHECK(message_end(message_make(4097, 4), 4097, 4) == id);
	/* the next is too large for it, and for what comes then there is a larger one */
	CHECK(message_end(message_make(MUCH, 5), MUCH, 5) != id);
	id = message_end(message_make(MUCH, 6), MUCH, 6);
	CHECK(message_end(message_make(LONG, 7), LONG, 7) == id);
}

/* By then the file is mapped here: it is refused and given back, and grows, as before. */
static void test_often(void)
{
	uint64_t id = message_end(message_make(LONG, 21), LONG, 21);
	uint8_t *gone = mmap(NULL, MUCH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (unsigned i = 0; i < TURNS; i++) {
		size_t n = LONG + i * 1001;
		int fd = message_make(n, (uint8_t)i);

		if (i % 8 == 7)
			CHECK(message_end(message_make(n, (uint8_t)~i), n, (uint8_t)~i) != id);
		if (i % 16 == 3)
			CHECK(umad_message_file((void *)4096, LONG) == -EFAULT);
		CHECK(message_end(fd, n, (uint8_t)i) == id);
	}
	CHECK(gone != MAP_FAILED && !munmap(gone + LONG, MUCH - LONG));
	for (unsigned i = 0; i < 8; i++) {
		CHECK(umad_message_file(gone + LONG / 2, LONG) == -EFAULT);
		CHECK(message_end(message_make(LONG, 22), LONG, 22) == id);
	}
	CHECK(!munmap(gone, LONG));
}

static void test_in_use(void)
{
	int a = message_make(LONG, 8), b = message_make(LONG, 9), c = message_make(LONG, 10);

	CHECK(hidden_id(a) != hidden_id(b) && hidden_id(b) != hidden_id(c));
	message_end(b, LONG, 9);
	message_end(a, LONG, 8);
	message_end(c, LONG, 10);
}

static void test_in_flight(void)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.buf,
			    .msg_controllen = sizeof(control.buf)};
	int pair[2], fd = message_make(LONG, 11), taken;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	control.align = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	CHECK(sendmsg(pair[0], &mh, 0) == 1 && !close(fd));
	message_end(message_make(LONG, 12), LONG, 12);
	CHECK(recvmsg(pair[1], &mh, 0) == 1);
	memcpy(&taken, CMSG_DATA(&control.align), sizeof(taken));
	message_end(taken, LONG, 11);
	CHECK(!close(pair[0]) && !close(pair[1]));
}

static void test_mapped(void)
{
	int fd = message_make(LONG, 13);
	uint64_t id = hidden_id(fd);
	struct stat st;
	uint8_t *map;

	CHECK(!fstat(fd, &st));
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && !close(fd));
	CHECK(message_end(message_make(LONG, 14), LONG, 14) != id);
	bytes_make(LONG, 13);
	CHECK(!memcmp(map + st.st_size - LONG, bytes, LONG) && !munmap(map, (size_t)st.st_size));
	CHECK(message_end(message_make(LONG, 15), LONG, 15) == id);
}

static void test_refused(void)
{
	uint8_t *two = mmap(NULL, 2 * LONG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(two != MAP_FAILED && !munmap(two + LONG, LONG));
	CHECK(umad_message_file(two + LONG / 2, LONG) == -EFAULT);
	CHECK(umad_message_file(two + LONG, LONG) == -EFAULT);
	CHECK(umad_message_file(two + LONG, MOST + 1) == -EFAULT);
	message_end(message_make(MOST + 1, 16), MOST + 1, 16);
	message_end(message_make(LONG, 17), LONG, 17);
	CHECK(!munmap(two, LONG));
}

/* Somebody closed what he does not know, and has another file of that number. */
static void test_closed_by_number(void)
{
	int spare, other = memfd_create("other", 0);
	struct stat st;

	message_end(message_make(LONG, 18), LONG, 18);
	spare = hidden_next(0, UINT32_MAX);
	CHECK(spare >= 0 && other >= 0 && dup3(other, spare, 0) == spare);
	message_end(message_make(LONG, 19), LONG, 19);
	CHECK(!fstat(spare, &st) && !st.st_size);
	CHECK(!close(other) && !close(spare));
}

/* Parent and child write at the same time, each its own messages. */
static void test_fork(void)
{
	int fd = message_make(LONG, 20), status;
	pid_t child;

	message_check(fd, LONG, 20);
	child = fork();
	CHECK(child >= 0);
	if (!child)
		hidden_fork_child();
	if (!child)
		close(fd);
	for (unsigned i = 0; i < TURNS; i++)
		message_end(message_make(LONG, (uint8_t)(child ? i : ~i)), LONG,
			    (uint8_t)(child ? i : ~i));
	if (!child)
		_Exit(0);
	message_end(fd, LONG, 20);
	CHECK(waitpid(child, &status, 0) == child && !status);
}

int main(void)
{
	user_guard();
	test_is_fixed();
	test_again();
	test_often();
	test_in_use();
	test_in_flight();
	test_mapped();
	test_refused();
	test_closed_by_number();
	test_fork();
	return 0;
}
