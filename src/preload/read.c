// SPDX-License-Identifier: BSD-2-Clause
/*
 * Interposes calls that read from a descriptor.  A live attribute that the program reads from its
 * start shows its present value, because some programs go back to the start long before they read
 * again.
 */
#include "preload/libc.h"

#include <unistd.h>

#include "driver/cdev.h"
#include "driver/netlink/netlink.h"
#include "preload/socket.h"

ssize_t __read_chk(int fd, void *buf, size_t count, size_t buf_len);
ssize_t __pread_chk(int fd, void *buf, size_t count, off_t offset, size_t buf_len);
ssize_t __pread64_chk(int fd, void *buf, size_t count, __off64_t offset, size_t buf_len);

/* Returns true if the read has been made. */
static bool device_read(int fd, void *buf, size_t count, ssize_t *n)
{
	if (!netlink_is(fd))
		return cdev_read(fd, buf, count, n);
	*n = socket_read(fd, buf, count);
	return true;
}

exported ssize_t read(int fd, void *buf, size_t count)
{
	ssize_t n;

	if (!cdev_event_comes(fd) && cdev_is_ours(fd) && device_read(fd, buf, count, &n))
		return n;
	return real(read)(fd, buf, count);
}

exported ssize_t __read_chk(int fd, void *buf, size_t count, size_t buf_len)
{
	ssize_t n;

	/* If the count is larger than the buffer, libc ends the program, as it would without us. */
	if (cdev_is_ours(fd) && count <= buf_len && device_read(fd, buf, count, &n))
		return n;
	return real(__read_chk)(fd, buf, count, buf_len);
}

exported ssize_t pread(int fd, void *buf, size_t count, off_t offset)
{
	if (cdev_is_ours(fd))
		cdev_before_read(fd, offset);
	return real(pread)(fd, buf, count, offset);
}

exported ssize_t pread64(int fd, void *buf, size_t count, __off64_t offset)
{
	if (cdev_is_ours(fd))
		cdev_before_read(fd, offset);
	return real(pread64)(fd, buf, count, offset);
}

exported ssize_t __pread_chk(int fd, void *buf, size_t count, off_t offset, size_t buf_len)
{
	if (cdev_is_ours(fd))
		cdev_before_read(fd, offset);
	return real(__pread_chk)(fd, buf, count, offset, buf_len);
}

exported ssize_t __pread64_chk(int fd, void *buf, size_t count, __off64_t offset, size_t buf_len)
{
	if (cdev_is_ours(fd))
		cdev_before_read(fd, offset);
	return real(__pread64_chk)(fd, buf, count, offset, buf_len);
}
