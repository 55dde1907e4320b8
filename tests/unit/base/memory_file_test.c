/* SPDX-License-Identifier: BSD-2-Clause */
/* Our files in memory under the program's limit of file sizes. */
#include "base/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define SOFT  4096ul
#define BYTES (1ull << 30)

static void set_limit(rlim_t soft, rlim_t hard)
{
	struct rlimit limit = {soft, hard};

	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
}

static void want_limit(rlim_t soft, rlim_t hard)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_FSIZE, &limit));
	CHECK(limit.rlim_cur == soft && limit.rlim_max == hard);
}

static void want_size(int fd, off_t bytes)
{
	struct stat st;

	CHECK(!fstat(fd, &st) && st.st_size == bytes);
}

static bool xfsz_pending(void)
{
	sigset_t pending;

	return !sigpending(&pending) && sigismember(&pending, SIGXFSZ);
}

/* The limit is the program's and stays; no child is left, and no signal tells of one. */
static void soft_limit_is_lifted(void)
{
	int fd = memfd_create("test", 0);
	struct rlimit before;
	char text[6] = "";

	CHECK(!getrlimit(RLIMIT_FSIZE, &before));
	CHECK(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
	set_limit(SOFT, before.rlim_max);
	CHECK(memory_file_resize(fd, BYTES) == 0);
	want_size(fd, (off_t)BYTES);
	want_limit(SOFT, before.rlim_max);
	CHECK(!xfsz_pending());
	CHECK(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD);

	set_limit(0, before.rlim_max);
	CHECK(memory_file_store(fd, "hello", 5) == 0);
	want_size(fd, 5);
	CHECK(pread(fd, text, 5, 0) == 5 && !strcmp(text, "hello"));
	CHECK(memory_file_store(fd, "", 0) == 0);
	want_size(fd, 0);
	set_limit(before.rlim_cur, before.rlim_max);
	close(fd);
}

/* What a program holds back stays pending, and what it blocks stays blocked. */
static void pending_stays(void)
{
	int fd = memfd_create("test", 0);
	sigset_t set, old, now;
	struct rlimit before;

	CHECK(!getrlimit(RLIMIT_FSIZE, &before));
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	CHECK(!sigprocmask(SIG_BLOCK, &set, &old));
	raise(SIGXFSZ);
	set_limit(SOFT, before.rlim_max);
	CHECK(memory_file_resize(fd, BYTES) == 0);
	CHECK(xfsz_pending());
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &now) && sigismember(&now, SIGXFSZ));
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR); /* takes it */
	CHECK(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
	set_limit(before.rlim_cur, before.rlim_max);
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
	close(fd);
}

/* Under a hard limit, without rights: an error, and no signal. */
static int under_hard_limit(void)
{
	int fd = memfd_create("test", 0);

	if (!geteuid() && setresuid(65534, 65534, 65534))
		return 1;
	set_limit(SOFT, SOFT);
	if (memory_file_resize(fd, BYTES) != -EFBIG || xfsz_pending())
		return 2;
	if (memory_file_resize(fd, SOFT) != 0)
		return 3;
	want_limit(SOFT, SOFT);
	return 0;
}

static void hard_limit_is_told(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(under_hard_limit());
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 0);
}

/* Other errors are told as they are. */
static void errors_are_told(void)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING);

	CHECK(memory_file_resize(-1, 1) == -EBADF);
	CHECK(memory_file_store(-1, "x", 1) == -EBADF);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
	CHECK(memory_file_resize(fd, 1) == -EPERM);
	close(fd);
}

/* Whoever gets such a file cannot change it, and its sender can neither. */
static void message_is_fixed(const char *head, const char *rest)
{
	int fd = *head ? memory_file_pieces("test", head, strlen(head), rest, strlen(rest))
		       : memory_file_message("test", rest, strlen(rest));
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	char all[64] = "", want[64];

	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	snprintf(want, sizeof(want), "%s%s", head, rest);
	want_size(fd, (off_t)strlen(want));
	CHECK(pread(fd, all, sizeof(all), 0) == (ssize_t)strlen(want) && !strcmp(all, want));
	CHECK((fcntl(fd, F_GET_SEALS) & seals) == seals);
	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(ftruncate(fd, 0) && errno == EPERM);
	close(fd);
}

/* Bytes that are not there, all of them or from a page on, are told, and no descriptor stays. */
static void message_is_refused(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *two = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int next = dup(0);

	CHECK(two != MAP_FAILED && !munmap(two + page, page) && next >= 0 && !close(next));
	CHECK(memory_file_message("test", two + page, 1) == -EFAULT);
	CHECK(memory_file_message("test", two + page / 2, page) == -EFAULT);
	CHECK(memory_file_pieces("test", "head", 4, two + page / 2, page) == -EFAULT);
	CHECK(dup(0) == next && !close(next) && !munmap(two, page));
}

int main(void)
{
	soft_limit_is_lifted();
	pending_stays();
	hard_limit_is_told();
	errors_are_told();
	message_is_fixed("", "all of it");
	message_is_fixed("the beginning", " and the rest");
	message_is_refused();
	return 0;
}
