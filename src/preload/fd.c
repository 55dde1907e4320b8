// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls on descriptors.  The driver's table says which descriptors are device files, so it hears of
 * duplicates and closes, except those of a vfork child.  Such a child closes what it does not want to
 * pass on (Python's subprocess does); it has its own descriptors, but writes to our memory.  Of some
 * closes nobody can hear, so cdev_is_ours asks the kernel whether the descriptor still names the
 * file that the table says.
 *
 * write, close and open are cancellation points, but no thread may be cancelled in the middle of
 * their work.
 */
#include "preload/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/descriptor.h"
#include "driver/cdev.h"
#include "driver/netlink/netlink.h"
#include "preload/socket.h"
#include "preload/tree.h"
#include "preload/wait.h"

/* How often at most we give way to a thread of ours that opens a file. */
#define SOON_OPENED 1000u

/* False in a child of vfork, because the memory is its parent's. */
static bool begins_to_serve(unsigned long request)
{
	return unlikely((uint32_t)request == UFFDIO_REGISTER) && tree_active() &&
	       (!tree_device_opened() || tree_device_owner());
}

static int serve_and_tell(int fd, unsigned long request, void *arg)
{
	int ret;

	cdev_serving_begin(arg);
	ret = real(ioctl)(fd, request, arg);
	cdev_serving_end();
	return ret;
}

/* sysfs has none of the flags of a file, which `chattr +i` sets, nor has devtmpfs. */
static bool is_refused(int fd, unsigned long request)
{
	struct tree_path t;

	switch ((uint32_t)request) {
	case (uint32_t)FS_IOC_SETFLAGS:
	case (uint32_t)FS_IOC_GETFLAGS:
	case (uint32_t)FS_IOC_FSSETXATTR:
	case (uint32_t)FS_IOC_FSGETXATTR:
		return cdev_is_ours(fd) || tree_map_descriptor(fd, &t);
	default:
		return false;
	}
}

exported int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (unlikely(is_refused(fd, request))) {
		errno = ENOTTY;
		return -1;
	}
	if (cdev_is_ours(fd) || cdev_adopt(fd, request))
		return cdev_ioctl(fd, request, arg);
	return begins_to_serve(request) ? serve_and_tell(fd, request, arg)
					: real(ioctl)(fd, request, arg);
}

exported ssize_t write(int fd, const void *buf, size_t count)
{
	if (!cdev_is_ours(fd))
		return cdev_written(fd, real(write)(fd, buf, count));
	pthread_testcancel();
	return netlink_is(fd) ? socket_write(fd, buf, count) : cdev_write(fd, buf, count);
}

/* We treat hidden descriptors as if they were not there, because the program did not open them. */
static bool is_hidden(int fd)
{
	/* The owner comes first: a child of vfork must not clear the marks of its parent. */
	return hidden_is_marked(fd) && tree_device_owner() && hidden_is(fd);
}

exported int close(int fd)
{
	if (unlikely(is_hidden(fd))) {
		errno = EBADF;
		return -1;
	}
	wait_closed(fd);
	if (!cdev_is_listed(fd))
		return real(close)(fd);
	pthread_testcancel();
	no_cancellation();
	if (tree_device_owner())
		cdev_close(fd);
	return real(close)(fd);
}

static void close_devices(unsigned first, unsigned last)
{
	if (!tree_device_opened() || !tree_device_owner())
		return;
	cdev_close_range(first, last);
}

/* Closes the range around hidden descriptors. */
static int close_gaps(unsigned first, unsigned last, int flags)
{
	int hidden, ret = 0;

	while (first <= last && (hidden = hidden_next(first, last)) >= 0) {
		if ((unsigned)hidden > first)
			ret = real(close_range)(first, (unsigned)hidden - 1, flags);
		if (ret || (unsigned)hidden == last)
			return ret;
		first = (unsigned)hidden + 1;
	}
	return real(close_range)(first, last, flags);
}

exported int close_range(unsigned first, unsigned last, int flags)
{
	/* Hidden descriptors are CLOEXEC already. */
	bool gaps = tree_device_owner() && !(flags & (int)CLOSE_RANGE_CLOEXEC);
	int ret = gaps ? close_gaps(first, last, flags) : real(close_range)(first, last, flags);

	if (!ret && !(flags & (int)CLOSE_RANGE_CLOEXEC))
		close_devices(first, last);
	return ret;
}

exported void closefrom(int low)
{
	unsigned first = low < 0 ? 0 : (unsigned)low;

	close_devices(first, UINT_MAX);
	if (!tree_device_owner() || close_gaps(first, UINT_MAX, 0))
		real(closefrom)(low);
}

/* newfd is now another name of fd, and its earlier file is closed. */
static int fd_duplicated(int fd, int newfd)
{
	if (newfd >= 0 && newfd != fd && (cdev_is_listed(fd) || cdev_is_listed(newfd)) &&
	    tree_device_owner()) {
		int saved_errno = errno;

		cdev_dup(fd, newfd);
		errno = saved_errno;
	}
	return newfd;
}

exported int dup(int fd)
{
	return fd_duplicated(fd, real(dup)(fd));
}

/*
 * The kernel refuses a number that another thread is about to get from open (dup(2), EBUSY).  That
 * thread may be one of ours, of which the program knows nothing, so we give it time.  A thread of
 * the program may wait in open for long.
 */
static bool fd_soon_opened(int newfd, unsigned *times)
{
	if (newfd >= 0 || errno != EBUSY || !tree_device_opened() || ++*times > SOON_OPENED)
		return false;
	sched_yield();
	return true;
}

exported int dup2(int fd, int newfd)
{
	unsigned times = 0;
	int ret;

	do
		ret = real(dup2)(fd, newfd);
	while (unlikely(fd_soon_opened(ret, &times)));
	return fd_duplicated(fd, ret);
}

exported int dup3(int fd, int newfd, int flags)
{
	unsigned times = 0;
	int ret;

	do
		ret = real(dup3)(fd, newfd, flags);
	while (unlikely(fd_soon_opened(ret, &times)));
	return fd_duplicated(fd, ret);
}

static int fcntl_done(int fd, int cmd, int ret)
{
	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC ? fd_duplicated(fd, ret) : ret;
}

exported int fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return fcntl_done(fd, cmd, real(fcntl)(fd, cmd, arg));
}

exported int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return fcntl_done(fd, cmd, real(fcntl64)(fd, cmd, arg));
}
