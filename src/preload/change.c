// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions that make, rename or remove names, or change what a file says of itself.  Nobody does that
 * in the tree, root included: sysfs lets nobody make, rename or remove anything (fs/kernfs/dir.c), and
 * the modes, owners and times of the tree are the daemon's to give.  What the kernel finds out first
 * (fs/namei.c), a name that is there or is not, comes first here, too.
 */
#include "preload/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "driver/cdev.h"
#include "driver/netlink/netlink.h"
#include "fabric/device_tree.h"
#include "preload/program_memory.h"
#include "preload/socket.h"
#include "preload/tree.h"

int __xmknod(int version, const char *path, mode_t mode, dev_t *dev);
int __xmknodat(int version, int dirfd, const char *path, mode_t mode, dev_t *dev);

enum change {
	MAKES,
	REMOVES_FILE,
	REMOVES_DIRECTORY,
	CHANGES,	   /* or renames or removes it, whatever it is */
	CHANGES_ATTRIBUTE, /* an extended one, of which sysfs has none */
	CHANGES_LENGTH,	   /* which sysfs ignores */
	CHANGES_NOTHING,   /* which everybody may */
};

/* Says what is wrong with a change of what is there, or 0. */
static int change_error(const struct tree_path *t, enum change change, mode_t mode)
{
	switch (change) {
	case MAKES:
		return EEXIST;
	case REMOVES_FILE:
		return S_ISDIR(mode) ? EISDIR : EPERM;
	case REMOVES_DIRECTORY:
		return S_ISDIR(mode) ? EPERM : ENOTDIR;
	case CHANGES_ATTRIBUTE:
		return EOPNOTSUPP;
	case CHANGES_LENGTH:
		if (S_ISDIR(mode) || device_tree_node(t->below))
			return S_ISDIR(mode) ? EISDIR : EINVAL;
		return mode & (S_IWUSR | S_IWGRP | S_IWOTH) ? 0 : EACCES;
	case CHANGES_NOTHING:
		return 0;
	case CHANGES:
		break;
	}
	return EPERM;
}

/* Does as the kernel does with a change of a file of the tree. */
static int tree_change(struct tree_path *t, enum change change)
{
	int saved_errno = errno, error;
	struct stat st;

	if (!real(fstatat)(AT_FDCWD, t->text, &st, AT_SYMLINK_NOFOLLOW))
		error = change_error(t, change, st.st_mode);
	else if (errno == ENOENT && change == MAKES && tree_parent_is_there(t))
		error = EPERM;
	else
		error = errno;
	errno = error ? error : saved_errno;
	return error ? -1 : 0;
}

/* Tells whether the call is about the descriptor itself. */
static bool is_of_tree_itself(int fd, const char *path, int flags)
{
	struct tree_path t;

	return flags & AT_EMPTY_PATH && (!path || (program_path_is_valid(path) && !*path)) &&
	       (cdev_is_ours(fd) || tree_map_descriptor(fd, &t));
}

static int change_refused(int error)
{
	errno = error;
	return -1;
}

/* Tells whether a change of the owner leaves it as it is (fs/open.c). */
static enum change change_of_owner(uid_t uid, gid_t gid)
{
	return uid == (uid_t)-1 && gid == (gid_t)-1 ? CHANGES_NOTHING : CHANGES;
}

/* The kernel does not even look for the file then (fs/utimes.c). */
static bool omits_times(const struct timespec times[2])
{
	struct timespec t[2];

	return times && program_read(t, times, sizeof(t)) && t[0].tv_nsec == UTIME_OMIT &&
	       t[1].tv_nsec == UTIME_OMIT;
}

/* Defines a function of one path, relative to dirfd; the rest are the arguments of the real one. */
#define CHANGES_PATH(change, dirfd, keep_last, name, parameters, ...)               \
	exported int name parameters                                                \
	{                                                                           \
		struct tree_path t;                                                 \
		const char *mapped = tree_map(dirfd, path, keep_last, &t);          \
                                                                                    \
		return t.below ? tree_change(&t, change) : real(name)(__VA_ARGS__); \
	}

CHANGES_PATH(MAKES, AT_FDCWD, true, mkdir, (const char *path, mode_t mode), mapped, mode)
CHANGES_PATH(MAKES, at, true, mkdirat, (int at, const char *path, mode_t mode), at, mapped, mode)
CHANGES_PATH(MAKES, AT_FDCWD, true, mkfifo, (const char *path, mode_t mode), mapped, mode)
CHANGES_PATH(MAKES, at, true, mkfifoat, (int at, const char *path, mode_t mode), at, mapped, mode)
CHANGES_PATH(MAKES, AT_FDCWD, true, mknod, (const char *path, mode_t mode, dev_t dev), mapped, mode,
	     dev)
CHANGES_PATH(MAKES, at, true, mknodat, (int at, const char *path, mode_t mode, dev_t dev), at,
	     mapped, mode, dev)
CHANGES_PATH(MAKES, AT_FDCWD, true, __xmknod,
	     (int version, const char *path, mode_t mode, dev_t *dev), version, mapped, mode, dev)
CHANGES_PATH(MAKES, at, true, __xmknodat,
	     (int version, int at, const char *path, mode_t mode, dev_t *dev), version, at, mapped,
	     mode, dev)
CHANGES_PATH(MAKES, AT_FDCWD, true, symlink, (const char *target, const char *path), target, mapped)
CHANGES_PATH(MAKES, at, true, symlinkat, (const char *target, int at, const char *path), target, at,
	     mapped)

CHANGES_PATH(REMOVES_FILE, AT_FDCWD, true, unlink, (const char *path), mapped)
CHANGES_PATH(REMOVES_DIRECTORY, AT_FDCWD, true, rmdir, (const char *path), mapped)
CHANGES_PATH(CHANGES, AT_FDCWD, true, remove, (const char *path), mapped)
CHANGES_PATH((flags & AT_REMOVEDIR) ? REMOVES_DIRECTORY : REMOVES_FILE, at, true, unlinkat,
	     (int at, const char *path, int flags), at, mapped, flags)

/* A function that may also be about a descriptor. */
#define CHANGES_BY_FLAGS(change, name, parameters, ...)                                   \
	exported int name parameters                                                      \
	{                                                                                 \
		struct tree_path t;                                                       \
		const char *mapped = tree_map(at, path, flags & AT_SYMLINK_NOFOLLOW, &t); \
                                                                                          \
		if (is_of_tree_itself(at, path, flags))                                   \
			return change == CHANGES_NOTHING ? 0 : change_refused(EPERM);     \
		return t.below ? tree_change(&t, change) : real(name)(__VA_ARGS__);       \
	}

CHANGES_PATH(CHANGES, AT_FDCWD, false, chmod, (const char *path, mode_t mode), mapped, mode)
CHANGES_PATH(CHANGES, AT_FDCWD, true, lchmod, (const char *path, mode_t mode), mapped, mode)
CHANGES_BY_FLAGS(CHANGES, fchmodat, (int at, const char *path, mode_t mode, int flags), at, mapped,
		 mode, flags)
CHANGES_PATH(change_of_owner(uid, gid), AT_FDCWD, false, chown,
	     (const char *path, uid_t uid, gid_t gid), mapped, uid, gid)
CHANGES_PATH(change_of_owner(uid, gid), AT_FDCWD, true, lchown,
	     (const char *path, uid_t uid, gid_t gid), mapped, uid, gid)
CHANGES_BY_FLAGS(change_of_owner(uid, gid), fchownat,
		 (int at, const char *path, uid_t uid, gid_t gid, int flags), at, mapped, uid, gid,
		 flags)
CHANGES_PATH(CHANGES, AT_FDCWD, false, utime, (const char *path, const struct utimbuf *times),
	     mapped, times)
CHANGES_PATH(CHANGES, AT_FDCWD, false, utimes, (const char *path, const struct timeval times[2]),
	     mapped, times)
CHANGES_PATH(CHANGES, AT_FDCWD, true, lutimes, (const char *path, const struct timeval times[2]),
	     mapped, times)

exported int utimensat(int at, const char *path, const struct timespec times[2], int flags)
{
	struct tree_path t;
	const char *mapped = tree_map(at, path, flags & AT_SYMLINK_NOFOLLOW, &t);
	bool itself = is_of_tree_itself(at, path, flags);

	if ((!itself && !t.below) || omits_times(times))
		return real(utimensat)(at, mapped, times, flags);
	return itself ? change_refused(EPERM) : tree_change(&t, CHANGES);
}

CHANGES_PATH(CHANGES_ATTRIBUTE, AT_FDCWD, false, setxattr,
	     (const char *path, const char *name, const void *value, size_t size, int flags),
	     mapped, name, value, size, flags)
CHANGES_PATH(CHANGES_ATTRIBUTE, AT_FDCWD, true, lsetxattr,
	     (const char *path, const char *name, const void *value, size_t size, int flags),
	     mapped, name, value, size, flags)
CHANGES_PATH(CHANGES_ATTRIBUTE, AT_FDCWD, false, removexattr, (const char *path, const char *name),
	     mapped, name)
CHANGES_PATH(CHANGES_ATTRIBUTE, AT_FDCWD, true, lremovexattr, (const char *path, const char *name),
	     mapped, name)
CHANGES_PATH(CHANGES_LENGTH, AT_FDCWD, false, truncate, (const char *path, off_t length), mapped,
	     length)
CHANGES_PATH(CHANGES_LENGTH, AT_FDCWD, false, truncate64, (const char *path, __off64_t length),
	     mapped, length)

/* ---- by a descriptor, as the kernel does with files of sysfs and devtmpfs ---- */

static int descriptor_flags(int fd)
{
	int flags = real(fcntl)(fd, F_GETFL);

	return flags < 0 ? O_PATH : flags;
}

static int descriptor_change(int fd, int error)
{
	if (descriptor_flags(fd) & O_PATH)
		error = EBADF;
	return error ? change_refused(error) : 0;
}

#define CHANGES_DESCRIPTOR(error, name, parameters, ...)                      \
	exported int name parameters                                          \
	{                                                                     \
		return tree_has_descriptor(fd) ? descriptor_change(fd, error) \
					       : real(name)(__VA_ARGS__);     \
	}

CHANGES_DESCRIPTOR(EPERM, fchmod, (int fd, mode_t mode), fd, mode)
CHANGES_DESCRIPTOR(change_of_owner(uid, gid) == CHANGES ? EPERM : 0, fchown,
		   (int fd, uid_t uid, gid_t gid), fd, uid, gid)
CHANGES_DESCRIPTOR(EPERM, futimes, (int fd, const struct timeval times[2]), fd, times)
CHANGES_DESCRIPTOR(EOPNOTSUPP, fsetxattr,
		   (int fd, const char *name, const void *value, size_t size, int flags), fd, name,
		   value, size, flags)
CHANGES_DESCRIPTOR(EOPNOTSUPP, fremovexattr, (int fd, const char *name), fd, name)

exported int futimens(int fd, const struct timespec times[2])
{
	return tree_has_descriptor(fd) && !omits_times(times) ? descriptor_change(fd, EPERM)
							      : real(futimens)(fd, times);
}

exported int futimesat(int at, const char *path, const struct timeval times[2])
{
	struct tree_path t;
	const char *mapped = tree_map(at, path, false, &t);

	if (!path && tree_has_descriptor(at))
		return descriptor_change(at, EPERM);
	return t.below ? tree_change(&t, CHANGES) : real(futimesat)(at, mapped, times);
}

/* Of the tree's files themselves nobody has a descriptor to write by, so the kernel refuses these. */

static bool is_attribute(int fd)
{
	struct stat st;

	return !tree_fstat(fd, &st) && S_ISREG(st.st_mode);
}

static bool can_be_written(int fd)
{
	int flags = descriptor_flags(fd);

	return !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
}

#define CHANGES_DESCRIPTOR_LENGTH(name, offset)                              \
	exported int name(int fd, offset length)                             \
	{                                                                    \
		if (!cdev_is_ours(fd))                                       \
			return real(name)(fd, length);                       \
		return length >= 0 && is_attribute(fd) && can_be_written(fd) \
			       ? 0                                           \
			       : change_refused(EINVAL);                     \
	}

CHANGES_DESCRIPTOR_LENGTH(ftruncate, off_t)
CHANGES_DESCRIPTOR_LENGTH(ftruncate64, __off64_t)

static int space_error(int fd, off_t offset, off_t bytes)
{
	if (offset < 0 || bytes <= 0)
		return EINVAL;
	if (!can_be_written(fd))
		return EBADF;
	return is_attribute(fd) ? EOPNOTSUPP : ENODEV;
}

#define CHANGES_DESCRIPTOR_SPACE(name, answer, parameters, ...)                  \
	exported int name parameters                                             \
	{                                                                        \
		return cdev_is_ours(fd) ? answer(space_error(fd, offset, bytes)) \
					: real(name)(__VA_ARGS__);               \
	}

CHANGES_DESCRIPTOR_SPACE(fallocate, change_refused, (int fd, int mode, off_t offset, off_t bytes),
			 fd, mode, offset, bytes)
CHANGES_DESCRIPTOR_SPACE(fallocate64, change_refused,
			 (int fd, int mode, __off64_t offset, __off64_t bytes), fd, mode, offset,
			 bytes)
CHANGES_DESCRIPTOR_SPACE(posix_fallocate, , (int fd, off_t offset, off_t bytes), fd, offset, bytes)
CHANGES_DESCRIPTOR_SPACE(posix_fallocate64, , (int fd, __off64_t offset, __off64_t bytes), fd,
			 offset, bytes)

/* ---- files of a new name ---- */

/* A template gets the name that was made, so it cannot be mapped. */
#define MAKES_FILE(name, parameters, ...)                                          \
	exported int name parameters                                               \
	{                                                                          \
		struct tree_path t;                                                \
                                                                                   \
		(void)tree_map(AT_FDCWD, path, true, &t);                          \
		return t.below ? tree_change(&t, MAKES) : real(name)(__VA_ARGS__); \
	}

MAKES_FILE(mkstemp, (char *path), path)
MAKES_FILE(mkstemp64, (char *path), path)
MAKES_FILE(mkostemp, (char *path, int flags), path, flags)
MAKES_FILE(mkostemp64, (char *path, int flags), path, flags)
MAKES_FILE(mkstemps, (char *path, int suffix), path, suffix)
MAKES_FILE(mkstemps64, (char *path, int suffix), path, suffix)
MAKES_FILE(mkostemps, (char *path, int suffix, int flags), path, suffix, flags)
MAKES_FILE(mkostemps64, (char *path, int suffix, int flags), path, suffix, flags)

exported char *mkdtemp(char *path)
{
	struct tree_path t;

	(void)tree_map(AT_FDCWD, path, true, &t);
	if (!t.below)
		return real(mkdtemp)(path);
	(void)tree_change(&t, MAKES);
	return NULL;
}

/* ---- two names ---- */

struct name {
	int at;
	const char *mapped;
	struct tree_path t;
};

static void name_map(struct name *n, int dirfd, const char *path, int flags)
{
	n->at = dirfd;
	n->mapped = path;
	if (!is_of_tree_itself(dirfd, path, flags) || !tree_map_descriptor(dirfd, &n->t))
		n->mapped = tree_map(dirfd, path, !(flags & AT_SYMLINK_FOLLOW), &n->t);
}

/* Nothing happens to a file that gets a name which it has (vfs_rename). */
static bool is_same(const struct tree_path *a, const struct tree_path *b)
{
	struct stat st_a, st_b;

	return !real(fstatat)(AT_FDCWD, a->text, &st_a, AT_SYMLINK_NOFOLLOW) &&
	       !real(fstatat)(AT_FDCWD, b->text, &st_b, AT_SYMLINK_NOFOLLOW) &&
	       st_a.st_ino == st_b.st_ino && st_a.st_dev == st_b.st_dev;
}

/* Neither from the tree nor to it: it is a file system of its own. */
static int tree_rename(struct name *from, struct name *to, unsigned flags)
{
	if (!from->t.below || !to->t.below) {
		errno = EXDEV;
		return -1;
	}
	if (flags & RENAME_NOREPLACE && tree_change(&to->t, MAKES) && errno == EEXIST)
		return -1;
	return tree_change(&from->t, is_same(&from->t, &to->t) ? CHANGES_NOTHING : CHANGES);
}

static int tree_link(struct name *from, struct name *to)
{
	int ret = from->t.below
			  ? tree_change(&from->t, CHANGES)
			  : real(faccessat)(from->at, from->mapped, F_OK, AT_SYMLINK_NOFOLLOW);

	if (ret && (!from->t.below || errno != EPERM))
		return -1;
	if (to->t.below && tree_change(&to->t, MAKES) && errno != EPERM)
		return -1;
	errno = from->t.below && to->t.below ? EPERM : EXDEV;
	return -1;
}

#define RENAMES(function, from_at, to_at, flags, parameters, ...)            \
	exported int function parameters                                     \
	{                                                                    \
		struct name a, b;                                            \
                                                                             \
		name_map(&a, from_at, from, 0);                              \
		name_map(&b, to_at, to, 0);                                  \
		return a.t.below || b.t.below ? tree_rename(&a, &b, flags)   \
					      : real(function)(__VA_ARGS__); \
	}

RENAMES(rename, AT_FDCWD, AT_FDCWD, 0, (const char *from, const char *to), a.mapped, b.mapped)
RENAMES(renameat, from_at, to_at, 0, (int from_at, const char *from, int to_at, const char *to),
	a.at, a.mapped, b.at, b.mapped)
RENAMES(renameat2, from_at, to_at, flags,
	(int from_at, const char *from, int to_at, const char *to, unsigned flags), a.at, a.mapped,
	b.at, b.mapped, flags)

#define LINKS(function, from_at, to_at, flags, parameters, ...)                                  \
	exported int function parameters                                                         \
	{                                                                                        \
		struct name a, b;                                                                \
                                                                                                 \
		name_map(&a, from_at, from, flags);                                              \
		name_map(&b, to_at, to, 0);                                                      \
		return a.t.below || b.t.below ? tree_link(&a, &b) : real(function)(__VA_ARGS__); \
	}

LINKS(link, AT_FDCWD, AT_FDCWD, 0, (const char *from, const char *to), a.mapped, b.mapped)
LINKS(linkat, from_at, to_at, flags,
      (int from_at, const char *from, int to_at, const char *to, int flags), a.at, a.mapped, b.at,
      b.mapped, flags)

/* ---- local sockets ---- */

/* The kernel takes a name that is there for another socket's. */
static int tree_bind(struct tree_path *t)
{
	int ret = tree_change(t, MAKES);

	if (ret && errno == EEXIST)
		errno = EADDRINUSE;
	return ret;
}

/* Tells whether a bind makes a name.  The kernel says what is wrong with another address. */
static bool makes_name(int fd, const struct sockaddr *address, socklen_t len,
		       struct sockaddr_un *name)
{
	int domain = AF_UNSPEC;
	socklen_t bytes = sizeof(domain);

	if (!tree_active() || len <= offsetof(struct sockaddr_un, sun_path) ||
	    len > sizeof(*name) || real(getsockopt)(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) ||
	    domain != AF_UNIX || !program_read(name, address, len))
		return false;
	((char *)name)[len] = '\0';
	return name->sun_family == AF_UNIX && name->sun_path[0];
}

exported int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	struct {
		struct sockaddr_un name;
		char end;
	} a;
	int saved_errno = errno;
	struct tree_path t;
	const char *mapped;

	if (unlikely(netlink_is(fd)))
		return socket_bind(fd, address, len);
	if (!makes_name(fd, address, len, &a.name)) {
		errno = saved_errno;
		return real(bind)(fd, address, len);
	}
	mapped = tree_map(AT_FDCWD, a.name.sun_path, true, &t);
	if (t.below)
		return tree_bind(&t);
	if (mapped == a.name.sun_path)
		return real(bind)(fd, address, len);
	/* the machine's by another name */
	if (strlen(mapped) >= sizeof(a.name.sun_path))
		return change_refused(ENAMETOOLONG);
	memcpy(a.name.sun_path, mapped, strlen(mapped) + 1);
	return real(bind)(fd, (struct sockaddr *)&a.name, sizeof(a.name));
}
