// SPDX-License-Identifier: BSD-2-Clause
/*
 * A live attribute as an open file: a memfd that holds its text.  As in sysfs, a read from the
 * start makes the text anew (Documentation/filesystems/sysfs.rst, "Reading and writing attribute
 * data"), which is how programs follow a counter through one descriptor.
 */
#include "driver/file/cdev_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/memory_file.h"
#include "base/text.h"
#include "fabric/client/client.h"
#include "fabric/protocol.h"

struct attr_file {
	struct cdev_file cdev;
	struct stat look; /* the file of the tree */
	char path[FABRIC_PATH_BYTES];
};

static struct attr_file *attr_file_of(struct cdev_file *f)
{
	return container_of(f, struct attr_file, cdev);
}

static int text_store(int fd, const char *text, ssize_t n)
{
	return n < 0 || memory_file_store(fd, text, (size_t)n) ? -EIO : 0;
}

/* A look costs less than storing the same text again. */
static bool has_text(int fd, const char *text, ssize_t n)
{
	char present[FABRIC_TEXT_BYTES + 1];

	return syscall(SYS_pread64, fd, present, sizeof(present), 0) == n &&
	       !memcmp(present, text, (size_t)n);
}

/* The old text stays if the fabric has gone, because then there is no new one. */
static void attr_before_read(struct cdev_file *f, int fd, off_t position)
{
	struct attr_file *a = attr_file_of(f);
	char text[FABRIC_TEXT_BYTES];
	int writable;
	ssize_t n;

	if (position)
		return;
	n = fabric_read_attr(a->path, text, sizeof(text));
	if (n < 0 || has_text(fd, text, n))
		return;
	writable = descriptor_reopen(0, fd, O_RDWR);
	(void)text_store(writable < 0 ? fd : writable, text, n);
	if (writable >= 0)
		close(writable);
}

static void attr_fstat(struct cdev_file *f, struct stat *st)
{
	*st = attr_file_of(f)->look;
}

static void attr_release(struct cdev_file *f)
{
	free(attr_file_of(f));
}

static const struct cdev_ops attr_ops = {
	.fstat = attr_fstat,
	.before_read = attr_before_read,
	.release = attr_release,
};

/* The daemon reads what is written. */
static const struct cdev_ops written_ops = {
	.fstat = attr_fstat,
	.release = attr_release,
};

/* Without memory, or with fd beyond the table, the text stays what it was at the open. */
static void attr_track(int fd, const char *path, const struct stat *look,
		       const struct cdev_ops *ops)
{
	struct attr_file *a = calloc(1, sizeof(*a));

	if (!a)
		return;
	cdev_file_init(&a->cdev, ops);
	a->look = *look;
	if (!text_copy(a->path, sizeof(a->path), path) || cdev_install(fd, &a->cdev))
		free(a);
}

/* A program that opens an attribute for reading cannot write it; without /proc, it could.  The number
 * stays: an open gives the lowest one that is free. */
static void read_only(int fd, int flags)
{
	int other = descriptor_reopen(0, fd, O_RDONLY);

	if (other < 0)
		return;
	syscall(SYS_dup3, other, fd, flags & O_CLOEXEC);
	close(other);
}

/*
 * Opens something for an attribute that cannot be read, such as the type of an empty GID.  The C library
 * reads streams without us, so the kernel itself must give the error: EINVAL is its answer to a read
 * of a socket that is not connected.
 */
static int unreadable_open(int flags)
{
	int type = SOCK_STREAM | (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0);
	int fd = (int)syscall(SYS_socket, AF_UNIX, type, 0);

	return fd < 0 ? -errno : fd;
}

static int text_open(const char *text, ssize_t n, int flags)
{
	int fd = memfd_create("softhca-attr", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

	if (fd < 0)
		return -errno;
	if (text_store(fd, text, n)) {
		close(fd);
		return -EIO;
	}
	read_only(fd, flags);
	return fd;
}

int attr_file_open(const char *path, int flags, const struct stat *look)
{
	char text[FABRIC_TEXT_BYTES];
	ssize_t n = fabric_read_attr(path, text, sizeof(text));
	int fd = (int)n;

	if (n >= 0)
		fd = text_open(text, n, flags);
	else if (n == -EINVAL)
		fd = unreadable_open(flags);
	if (fd >= 0 && look)
		attr_track(fd, path, look, &attr_ops);
	return fd;
}

int attr_file_create(const char *path, int flags, const struct stat *look)
{
	int fd = fabric_write_attr(path);

	switch (fd) {
	case -ENODEV:
	case -ENOENT:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return fd;
	default:
		break;
	}
	fd = fd < 0 ? -EIO : cdev_descriptor(fd, flags);
	if (fd >= 0 && look)
		attr_track(fd, path, look, &written_ops);
	return fd;
}
