// SPDX-License-Identifier: BSD-2-Clause
/*
 * See function.h.  The descriptor is an eventfd, so poll(2) and its like find an interrupt by
 * themselves.  The BAR is memory of another file, which a mapping of the descriptor maps instead.
 */
#include "driver/emulation/function.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "driver/file/cdev_file.h"
#include "fabric/device_tree.h"
#include "usermem/usermem.h"

struct uio_file {
	struct cdev_file cdev;
	struct function *function;
	struct function_driver driver;
	struct hidden event; /* our own descriptor of the eventfd */
	uint32_t device;
	uint32_t told; /* interrupts that the driver has heard of; only the upcall uses it */
};

static struct uio_file *uio_file_of(struct cdev_file *f)
{
	return container_of(f, struct uio_file, cdev);
}

static void uio_file_interrupt(struct function_driver *d)
{
	struct uio_file *u = container_of(d, struct uio_file, driver);
	uint32_t now = function_interrupts(u->function);
	const uint64_t one = 1;

	if (now == u->told)
		return;
	u->told = now;
	/* A program that has closed the descriptor does not want to know. */
	if (hidden_ours(&u->event))
		(void)!write(u->event.fd, &one, sizeof(one));
}

/*
 * A plain system call, because read() comes back to us.  A thread may be cancelled in it, because
 * it holds nothing there.
 */
static long uio_file_wait(int fd, uint64_t *events)
{
	int type;
	long n;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	n = syscall(SYS_read, fd, events, sizeof(*events));
	pthread_setcanceltype(type, NULL);
	return n;
}

/* The eventfd itself handles signals, missing interrupts and O_NONBLOCK. */
static ssize_t uio_file_read(struct cdev_file *f, int fd, void *buf, size_t count)
{
	uint64_t events;
	uint32_t n;

	if (count != sizeof(n))
		return -EINVAL;
	if (atomic_load(&f->foreign))
		return -EIO;
	if (uio_file_wait(fd, &events) < 0)
		return -errno;
	n = function_interrupts(uio_file_of(f)->function);
	return usermem_copy(buf, &n, sizeof(n)) ? (ssize_t)sizeof(n) : -EFAULT;
}

/* A driver cannot hold off the function's interrupts. */
static ssize_t uio_file_write(struct cdev_file *f, int fd, const void *buf, size_t count)
{
	(void)f, (void)fd, (void)buf;
	return count == sizeof(uint32_t) ? -ENOSYS : -EINVAL;
}

static int uio_file_map(struct cdev_file *f, size_t len, off_t offset)
{
	if (offset || len > EMULATION_BAR_BYTES)
		return -EINVAL;
	return function_memory_fd(uio_file_of(f)->function);
}

static void uio_file_mapped(struct cdev_file *f, uintptr_t addr, size_t len, off_t offset)
{
	(void)len, (void)offset;
	function_mapped(uio_file_of(f)->function, addr);
}

static void uio_file_fstat(struct cdev_file *f, struct stat *st)
{
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(UIO_MAJOR, uio_file_of(f)->device);
	st->st_size = 0;
	st->st_blocks = 0;
}

static void uio_file_last_close(struct cdev_file *f)
{
	struct uio_file *u = uio_file_of(f);

	if (!atomic_load(&f->foreign))
		function_leave(u->function, &u->driver);
}

static void uio_file_release(struct cdev_file *f)
{
	struct uio_file *u = uio_file_of(f);

	if (!atomic_load(&f->foreign)) {
		hidden_close(&u->event);
		function_put(u->function);
	}
	free(u);
}

static const struct cdev_ops uio_file_ops = {
	.read = uio_file_read,
	.write = uio_file_write,
	.map = uio_file_map,
	.mapped = uio_file_mapped,
	.fstat = uio_file_fstat,
	.last_close = uio_file_last_close,
	.release = uio_file_release,
};

/* Makes the eventfd: returns the program's descriptor and keeps ours; or a negative errno. */
static int uio_file_event(struct uio_file *u, int flags)
{
	int fd = eventfd(0, flags & O_NONBLOCK ? EFD_CLOEXEC | EFD_NONBLOCK : EFD_CLOEXEC), low,
	    copy;

	if (fd < 0)
		return -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	low = copy < 0 ? -errno : cdev_descriptor(fd, flags);
	if (low < 0) {
		close(copy < 0 ? fd : copy);
		return low;
	}
	u->event = hidden_keep(copy);
	return low;
}

static int uio_file_make(uint32_t device, int flags, struct uio_file *u)
{
	int fd, ret = function_get(device, &u->function);

	if (ret < 0)
		return ret;
	u->device = device;
	u->driver.interrupt = uio_file_interrupt;
	u->told = function_interrupts(u->function);
	fd = uio_file_event(u, flags);
	if (fd < 0)
		goto put;
	ret = function_drive(u->function, &u->driver);
	if (ret < 0)
		goto close_fd;
	ret = cdev_install(fd, &u->cdev);
	if (ret < 0)
		goto leave;
	return fd;

leave:
	function_leave(u->function, &u->driver);
close_fd:
	hidden_close(&u->event);
	close(fd);
	fd = ret;
put:
	function_put(u->function);
	return fd;
}

int uio_file_open(const char *name, int flags)
{
	const char *digits = name + strlen("uio");
	struct uio_file *u;
	char *end;
	unsigned long device = strtoul(digits, &end, 10);
	int fd;

	if (*end || end == digits || device >= UINT32_MAX)
		return -ENOENT;
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	cdev_file_init(&u->cdev, &uio_file_ops);
	fd = uio_file_make((uint32_t)device, flags, u);
	if (fd < 0)
		free(u);
	return fd == -ENODEV ? -ENOENT : fd;
}
