// SPDX-License-Identifier: BSD-2-Clause
/*
 * readv, writev and their relatives.  If a device does not know vectors, the kernel makes one read or write of each
 * element, and goes on as long as they are whole.
 */
#include "preload/libc.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/uio.h>
#include <unistd.h>

#include "driver/cdev.h"
#include "driver/netlink/netlink.h"
#include "preload/program_memory.h"
#include "preload/socket.h"

static ssize_t element_read(int fd, const struct iovec *e)
{
	ssize_t n;

	return cdev_read(fd, e->iov_base, e->iov_len, &n) ? n
							  : real(read)(fd, e->iov_base, e->iov_len);
}

static ssize_t element_write(int fd, const struct iovec *e)
{
	return cdev_write(fd, e->iov_base, e->iov_len);
}

static ssize_t vector_move(int fd, const struct iovec *program, int count,
			   ssize_t (*move)(int fd, const struct iovec *e))
{
	struct iovec vector[IOV_MAX];
	ssize_t total = 0;

	if (!program_read(vector, program, (size_t)count * sizeof(*vector))) {
		errno = EFAULT;
		return -1;
	}
	for (int i = 0; i < count; i++) {
		ssize_t n = vector[i].iov_len ? move(fd, &vector[i]) : 0;

		if (n < 0)
			return total ? total : n;
		total += n;
		if ((size_t)n != vector[i].iov_len)
			break;
	}
	return total;
}

/* The kernel says what is wrong with the count. */
static bool is_moved_here(int fd, int count)
{
	return cdev_is_ours(fd) && count >= 0 && count <= IOV_MAX && cdev_moves_bytes(fd);
}

/* Sockets know vectors. */
static bool is_socket(int fd, int count)
{
	return count >= 0 && count <= IOV_MAX && netlink_is(fd);
}

exported ssize_t readv(int fd, const struct iovec *vector, int count)
{
	if (unlikely(is_socket(fd, count)))
		return socket_readv(fd, vector, count);
	if (is_moved_here(fd, count))
		return vector_move(fd, vector, count, element_read);
	if (cdev_is_ours(fd))
		cdev_before_read(fd, CDEV_WHERE_IT_STANDS);
	return real(readv)(fd, vector, count);
}

/* An offset of -1 is CDEV_WHERE_IT_STANDS. */
#define READS_VECTOR_AT(name, parameters, ...)        \
	exported ssize_t name parameters              \
	{                                             \
		if (cdev_is_ours(fd))                 \
			cdev_before_read(fd, offset); \
		return real(name)(__VA_ARGS__);       \
	}

READS_VECTOR_AT(preadv, (int fd, const struct iovec *vector, int count, off_t offset), fd, vector,
		count, offset)
READS_VECTOR_AT(preadv64, (int fd, const struct iovec *vector, int count, __off64_t offset), fd,
		vector, count, offset)
READS_VECTOR_AT(preadv2, (int fd, const struct iovec *vector, int count, off_t offset, int flags),
		fd, vector, count, offset, flags)
READS_VECTOR_AT(preadv64v2,
		(int fd, const struct iovec *vector, int count, __off64_t offset, int flags), fd,
		vector, count, offset, flags)

exported ssize_t writev(int fd, const struct iovec *vector, int count)
{
	if (unlikely(is_socket(fd, count))) {
		pthread_testcancel();
		return socket_writev(fd, vector, count);
	}
	if (!is_moved_here(fd, count))
		return cdev_written(fd, real(writev)(fd, vector, count));
	pthread_testcancel();
	return vector_move(fd, vector, count, element_write);
}
