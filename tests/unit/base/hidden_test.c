// SPDX-License-Identifier: BSD-2-Clause
/* Hidden descriptors: what is closed behind the back, and what takes the number. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "check.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static struct hidden hidden_pipe(int *reader)
{
	int fd[2];

	CHECK(!pipe(fd));
	*reader = fd[0];
	return hidden_keep(fd[1]);
}

static void test_keep(void)
{
	int reader, number;
	struct hidden h = hidden_pipe(&reader), none = HIDDEN_NONE;

	CHECK(h.fd > reader && h.fd >= 100 && fcntl(h.fd, F_GETFD) == FD_CLOEXEC);
	CHECK(hidden_ours(&h) && hidden_is(h.fd) && !hidden_is(reader) && !hidden_is(-1));
	CHECK(!hidden_is((int)HIDDEN_MAX_FDS) && hidden_next(0, UINT32_MAX) == h.fd);
	CHECK(hidden_next(0, (unsigned)h.fd - 1) < 0 && hidden_next((unsigned)h.fd + 1, ~0u) < 0);
	CHECK(hidden_keep(-1).fd == -1 && !hidden_ours(&none));
	number = h.fd;
	hidden_close(&h);
	CHECK(!is_open(number) && !hidden_is(number) && !hidden_ours(&h) && h.fd == -1);
	hidden_close(&h);
	close(reader);
}

/* A file of the program's, and after it another hidden one, under a number that was ours. */
static void test_number_taken(void)
{
	int reader, next_reader, number;
	struct hidden h = hidden_pipe(&reader), next;

	number = h.fd;
	CHECK(!close(number) && !hidden_ours(&h) && !hidden_is(number));
	CHECK(dup2(0, number) == number);
	CHECK(!hidden_ours(&h) && !hidden_is(number));
	close(number);
	next = hidden_pipe(&next_reader);
	CHECK(next.fd == number && hidden_ours(&next) && !hidden_ours(&h));
	hidden_close(&h);
	CHECK(hidden_ours(&next) && hidden_is(number));
	hidden_close(&next);
	close(reader);
	close(next_reader);
}

static void test_eventfd(void)
{
	struct hidden h = hidden_keep(eventfd(0, EFD_CLOEXEC));
	int other = eventfd(0, EFD_CLOEXEC), number = h.fd;

	CHECK(other >= 0 && hidden_ours(&h));
	CHECK(dup2(other, number) == number && !hidden_ours(&h));
	hidden_close(&h);
	CHECK(is_open(number));
	close(number);
	close(other);
}

/* Files without a name of their own share an inode: another kind of them is not ours either. */
static void test_anonymous(void)
{
	struct hidden h = hidden_keep(eventfd(0, EFD_CLOEXEC));
	int epoll = epoll_create1(EPOLL_CLOEXEC), number = h.fd;

	CHECK(epoll >= 0 && hidden_is(number));
	CHECK(dup2(epoll, number) == number && !hidden_ours(&h) && !hidden_is(number));
	hidden_close(&h);
	CHECK(is_open(number));
	close(number);
	close(epoll);
}

/* Few descriptors in all: then the number is what it is. */
static void test_limit(void)
{
	struct rlimit all, few;
	struct hidden h;
	int low;

	CHECK(!getrlimit(RLIMIT_NOFILE, &all));
	low = dup(0);
	CHECK(low >= 0);
	few = all;
	few.rlim_cur = (rlim_t)low + 1;
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	h = hidden_keep(low);
	CHECK(h.fd == low && hidden_ours(&h) && fcntl(low, F_GETFD) == FD_CLOEXEC);
	hidden_close(&h);
	CHECK(!is_open(low));
	CHECK(!setrlimit(RLIMIT_NOFILE, &all));
}

static void test_fork(void)
{
	int reader, status;
	struct hidden h = hidden_pipe(&reader);
	pid_t pid = fork();

	if (!pid) {
		hidden_fork_child();
		CHECK(!is_open(h.fd) && !hidden_is(h.fd) && is_open(reader));
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(hidden_ours(&h));
	hidden_close(&h);
	close(reader);
}

int main(void)
{
	int null = open("/dev/null", O_RDONLY); /* 0 is open, whoever started us */

	CHECK(null >= 0 && (null == 0 || dup2(null, 0) == 0));
	test_keep();
	test_number_taken();
	test_eventfd();
	test_anonymous();
	test_limit();
	test_fork();
	return 0;
}
