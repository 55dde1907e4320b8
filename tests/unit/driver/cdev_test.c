/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The doors of the driver, by a file of the test's own: reads and writes are the file's, also those of
 * vectors, and a thread that is cancelled while it waits leaves no reference behind.
 */
#include "driver/cdev.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"
#include "driver/file/cdev_file.h"
#include "preload/tree.h"
#include "test_cancel.h"

#define PIECE 4 /* the file gives and takes so many bytes at a time, or all that is asked for */

/* In place of the device tree, of which sockets ask only when they are opened. */
bool tree_active(void)
{
	return false;
}

void tree_missed(void)
{
}

static unsigned reads, writes, releases;
static int fail_at, last_fd, pair[2];

static ssize_t piece_read(struct cdev_file *f, int fd, void *buf, size_t count)
{
	(void)f;
	last_fd = fd;
	if ((int)++reads == fail_at)
		return -ENOSPC;
	memset(buf, (int)('a' + reads - 1), count < PIECE ? count : PIECE);
	return (ssize_t)(count < PIECE ? count : PIECE);
}

static ssize_t piece_write(struct cdev_file *f, int fd, const void *buf, size_t count)
{
	(void)f, (void)buf;
	last_fd = fd;
	if ((int)++writes == fail_at)
		return -EIO;
	return (ssize_t)(count < PIECE ? count : PIECE);
}

static int no_ioctl(struct cdev_file *f, unsigned long request, void *arg)
{
	(void)f, (void)request, (void)arg;
	return -ENOTTY;
}

static void count_nothing(struct cdev_file *f)
{
	(void)f;
}

static void count_release(struct cdev_file *f)
{
	(void)f;
	releases++;
}

static const struct cdev_ops piece_ops = {
	.ioctl = no_ioctl,
	.read = piece_read,
	.write = piece_write,
	.last_close = count_nothing,
	.release = count_release,
	.shared = true,
};

static void test_moves(int fd)
{
	char buf[16] = "";
	ssize_t n = 0;

	CHECK(!cdev_read(pair[1], buf, 1, &n) && !cdev_moves_bytes(pair[1]));
	CHECK(cdev_moves_bytes(fd));
	CHECK(cdev_read(fd, buf, 3, &n) && n == 3 && last_fd == fd && !strcmp(buf, "aaa"));
	CHECK(cdev_write(fd, "xyz", 3) == 3 && writes == 1);
	fail_at = 2;
	CHECK(cdev_read(fd, buf, 3, &n) && n == -1 && errno == ENOSPC);
	CHECK(cdev_write(fd, "xyz", 3) == -1 && errno == EIO);
}

/* One operation for each element, until one is short or fails. */
static void test_vectors(int fd)
{
	char a[PIECE], b[PIECE + 2], c[PIECE];
	struct iovec whole[] = {{a, sizeof(a)}, {b, PIECE}, {c, 2}};
	struct iovec is_short[] = {{a, 2}, {b, sizeof(b)}, {c, sizeof(c)}};
	struct iovec none[] = {{a, 0}, {b, 0}};
	volatile int wrong = -1; /* the compiler would see it */

	reads = writes = 0;
	fail_at = -1;
	CHECK(readv(fd, whole, 3) == 2 * PIECE + 2 && reads == 3);
	CHECK(a[0] == 'a' && b[0] == 'b' && c[0] == 'c');
	CHECK(writev(fd, whole, 3) == 2 * PIECE + 2 && writes == 3);
	CHECK(readv(fd, is_short, 3) == 2 + PIECE && reads == 5);
	CHECK(readv(fd, none, 2) == 0 && readv(fd, none, 0) == 0 && reads == 5);
	fail_at = 7;
	CHECK(readv(fd, whole, 3) == PIECE && reads == 7);
	fail_at = 8;
	CHECK(readv(fd, whole, 3) == -1 && errno == ENOSPC && reads == 8);
	CHECK(readv(fd, whole, wrong) == -1 && errno == EINVAL);
	/* others' descriptors are libc's */
	CHECK(writev(pair[1], is_short, 1) == 2 && readv(pair[0], is_short, 1) == 2);
}

/* The kernel does these for every file before it asks a driver. */
static void test_requests_of_all_files(int fd)
{
	int on = 1;

	CHECK(!(fcntl(fd, F_GETFD) & FD_CLOEXEC) && !cdev_ioctl(fd, FIOCLEX, NULL));
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC && !cdev_ioctl(fd, FIONCLEX, NULL));
	CHECK(!(fcntl(fd, F_GETFD) & FD_CLOEXEC) && !cdev_ioctl(fd, FIONBIO, &on));
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(cdev_ioctl(fd, FIONREAD, &on) == -1 && errno == ENOTTY);
}

static ssize_t waiting_read(struct cdev_file *f, int fd, void *buf, size_t count)
{
	(void)f, (void)fd;
	return read(pair[0], buf, count); /* a cancellation point, and there is nothing */
}

static const struct cdev_ops waiting_ops = {.read = waiting_read,
					    .last_close = count_nothing,
					    .release = count_release,
					    .shared = true};

static void *reader_run(void *fd)
{
	ssize_t n;
	char c;

	pthread_cleanup_push(cancelled_stack_clear, NULL);
	(void)cdev_read(*(int *)fd, &c, 1, &n);
	pthread_cleanup_pop(0);
	return NULL;
}

static void test_cancelled(int fd)
{
	struct cdev_file f;
	pthread_t reader;
	void *result;

	releases = 0;
	cdev_file_init(&f, &waiting_ops);
	CHECK(!cdev_install(fd, &f) && releases == 1);
	CHECK(!pthread_create(&reader, NULL, reader_run, &fd));
	/* Either before it waits or while it does. */
	CHECK(!pthread_cancel(reader) && !pthread_join(reader, &result));
	CHECK(result == PTHREAD_CANCELED);
	cdev_close(fd);
	CHECK(releases == 2);
}

int main(void)
{
	struct cdev_file f;
	int fd;

	CHECK(!pipe(pair));
	fd = dup(pair[0]);
	cdev_file_init(&f, &piece_ops);
	CHECK(fd >= 0 && !cdev_install(fd, &f));
	test_moves(fd);
	test_vectors(fd);
	test_requests_of_all_files(fd);
	CHECK(!fcntl(fd, F_SETFL, 0));
	test_cancelled(fd);
	return 0;
}
