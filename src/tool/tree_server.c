// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca-view ROOT: a FUSE file system that shows the device tree of a host, which is the directory
 * ROOT: directories and links as the daemon wrote them, device files with their numbers, and
 * attributes with the text that the daemon knows at the moment of the read.
 *
 * `softhca run --view=mount` starts it (mount_view.c), with /dev/fuse and a socket open.  It ends when
 * the file system is unmounted.  It is a program of its own because not every system that runs
 * softhca has libfuse3.
 */
#define FUSE_USE_VERSION 31

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/attr.h"
#include "fabric/client/client.h"
#include "fabric/device_tree.h"
#include "tool/mount_view.h"

struct served_tree {
	const char *root;
	int dir; /* the same, open */
};

/* An attribute as an open file. */
struct open_attr {
	bool live; /* it has the text that the daemon knows, and no descriptor */
	int fd;	   /* the file of the tree, or the stream that takes a new text */
	ssize_t n; /* length of the text, or a negative errno */
	char text[FABRIC_TEXT_BYTES];
};

static struct served_tree *served_tree(void)
{
	return fuse_get_context()->private_data;
}

/* FUSE gives paths with a slash in front. */
static const char *path_below(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static struct open_attr *attr_of(const struct fuse_file_info *fi)
{
	return (struct open_attr *)(uintptr_t)fi->fh;
}

static int tree_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	if (fstatat(served_tree()->dir, path_below(path), st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	device_tree_describe(served_tree()->root, path_below(path), st);
	return 0;
}

static int tree_readlink(const char *path, char *buf, size_t size)
{
	ssize_t n = readlinkat(served_tree()->dir, path_below(path), buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

static int tree_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
			struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	int fd = openat(served_tree()->dir, path_below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	(void)offset;
	(void)fi;
	(void)flags;
	if (!dir) {
		int ret = -errno;

		if (fd >= 0)
			close(fd);
		return ret;
	}
	while ((e = readdir(dir))) {
		struct stat st = {.st_ino = e->d_ino, .st_mode = DTTOIF(e->d_type)};

		if (fill(buf, e->d_name, &st, 0, 0))
			break;
	}
	closedir(dir);
	return 0;
}

static int attr_fd(const char *path, bool writes)
{
	int fd;

	if (writes)
		return fabric_write_attr(path);
	fd = openat(served_tree()->dir, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* As in sysfs, nobody opens a file without write permission for writing, root included. */
static int tree_open(const char *path, struct fuse_file_info *fi)
{
	bool writes = (fi->flags & O_ACCMODE) != O_RDONLY;
	struct open_attr *a;
	struct attr attr;
	bool known;

	known = attr_parse(path_below(path), &attr);
	if (writes && !(known && device_tree_is_written(path)))
		return -EACCES;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->live = known && !writes;
	a->fd = a->live ? -1 : attr_fd(path_below(path), writes);
	if (!a->live && a->fd < 0) {
		int ret = a->fd;

		free(a);
		return ret;
	}
	/* The size that stat tells is not the length of the text. */
	fi->direct_io = 1;
	fi->fh = (uintptr_t)a;
	return 0;
}

/* As in sysfs, a read from the start makes the text anew. */
static int tree_read(const char *path, char *buf, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	struct open_attr *a = attr_of(fi);
	ssize_t n;

	if (!a->live) {
		n = pread(a->fd, buf, size, offset);
		return n < 0 ? -errno : (int)n;
	}
	if (!offset)
		a->n = fabric_read_attr(path_below(path), a->text, sizeof(a->text));
	if (a->n < 0)
		return (int)a->n;
	if (offset >= a->n)
		return 0;
	n = a->n - offset;
	n = (size_t)n < size ? n : (ssize_t)size;
	memcpy(buf, a->text + offset, (size_t)n);
	return (int)n;
}

static int tree_write(const char *path, const char *buf, size_t size, off_t offset,
		      struct fuse_file_info *fi)
{
	ssize_t n = write(attr_of(fi)->fd, buf, size);

	(void)path;
	(void)offset;
	return n < 0 ? -errno : (int)n;
}

/* A shell's redirection truncates what it writes. */
static int tree_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)size;
	(void)fi;
	return device_tree_is_written(path) ? 0 : -EPERM;
}

static int tree_release(const char *path, struct fuse_file_info *fi)
{
	struct open_attr *a = attr_of(fi);

	(void)path;
	if (!a->live)
		close(a->fd);
	free(a);
	return 0;
}

static int refuse_mode(const char *path, mode_t mode)
{
	(void)path;
	(void)mode;
	return -EPERM;
}

static int refuse_node(const char *path, mode_t mode, dev_t dev)
{
	(void)path;
	(void)mode;
	(void)dev;
	return -EPERM;
}

static int refuse_removal(const char *path)
{
	(void)path;
	return -EPERM;
}

static int refuse_name(const char *from, const char *to)
{
	(void)from;
	(void)to;
	return -EPERM;
}

static int refuse_rename(const char *from, const char *to, unsigned flags)
{
	(void)flags;
	return refuse_name(from, to);
}

/* What FUSE has no function for is ENOSYS, which the kernel's own file systems never say. */
static int refuse_new_mode(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	(void)fi;
	return refuse_mode(path, mode);
}

static int refuse_owner(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
	(void)path;
	(void)uid;
	(void)gid;
	(void)fi;
	return -EPERM;
}

static int refuse_times(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
	(void)path;
	(void)times;
	(void)fi;
	return -EPERM;
}

static const struct fuse_operations operations = {
	.getattr = tree_getattr,
	.readlink = tree_readlink,
	.readdir = tree_readdir,
	.open = tree_open,
	.read = tree_read,
	.write = tree_write,
	.truncate = tree_truncate,
	.release = tree_release,
	.mkdir = refuse_mode,
	.mknod = refuse_node,
	.unlink = refuse_removal,
	.rmdir = refuse_removal,
	.symlink = refuse_name,
	.link = refuse_name,
	.rename = refuse_rename,
	.chmod = refuse_new_mode,
	.chown = refuse_owner,
	.utimens = refuse_times,
};

static int tree_serve(const char *root)
{
	char name[] = "softhca-view", *argv[] = {name, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct served_tree s = {.root = root};
	struct fuse *f;
	char at[32];
	int ret = 1;

	s.dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f = s.dir < 0 ? NULL : fuse_new(&args, &operations, sizeof(operations), &s);
	if (!f)
		return 1;
	snprintf(at, sizeof(at), "/dev/fd/%d", VIEW_FUSE_FD);
	if (!fuse_mount(f, at)) {
		ret = fuse_loop(f) ? 1 : 0;
		fuse_unmount(f);
	}
	fuse_destroy(f);
	close(s.dir);
	return ret;
}

/* Keeps nothing of the program's terminal and pipes. */
static void standard_streams_drop(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
	close(null);
}

int main(int argc, char **argv)
{
	char byte = 0;

	if (argc != 2 || send(VIEW_SOCKET_FD, &byte, 1, MSG_NOSIGNAL) != 1) {
		fprintf(stderr, "softhca-view: softhca run --view=mount starts this\n");
		return EXIT_USAGE;
	}
	standard_streams_drop();
	if (chdir("/") || read(VIEW_SOCKET_FD, &byte, 1) != 1)
		return 0;
	close(VIEW_SOCKET_FD);
	return tree_serve(argv[1]);
}
