// SPDX-License-Identifier: BSD-2-Clause
/*
 * stat(2) and its spellings.  Device files look like character devices with their real numbers and
 * attributes like those of sysfs, whether the program asks by path or by descriptor.  Programs built against glibc before 2.33 use
 * the names with __x.
 */
#include "preload/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "driver/cdev.h"
#include "preload/tree.h"

static_assert(sizeof(struct stat) == sizeof(struct stat64), "one structure, two names");

int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags);

static void descriptor_describe(int fd, struct stat *st)
{
	if (cdev_is_ours(fd))
		cdev_fstat(fd, st);
	else
		tree_describe_descriptor(fd, st);
}

int tree_fstat(int fd, struct stat *st)
{
	int ret = real(fstat)(fd, st);

	if (!ret)
		descriptor_describe(fd, st);
	return ret;
}

/* Tells whether a call that succeeded was about the descriptor itself.  New kernels take no path for
 * an empty one. */
static bool is_about_descriptor(const char *path, int flags)
{
	return flags & AT_EMPTY_PATH && (!path || !path[0]);
}

int tree_stat(int dirfd, const char *path, struct stat *st, int flags)
{
	struct tree_path t;
	const char *mapped = tree_map(dirfd, path, flags & AT_SYMLINK_NOFOLLOW, &t);
	int ret = real(fstatat)(dirfd, mapped, st, flags);

	if (!ret && is_about_descriptor(path, flags))
		descriptor_describe(dirfd, st);
	else if (!ret)
		tree_describe(&t, st);
	return ret;
}

exported int stat(const char *path, struct stat *st)
{
	if (!tree_active())
		return real(stat)(path, st);
	return tree_stat(AT_FDCWD, path, st, 0);
}

exported int lstat(const char *path, struct stat *st)
{
	if (!tree_active())
		return real(lstat)(path, st);
	return tree_stat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

exported int fstat(int fd, struct stat *st)
{
	if (!tree_active())
		return real(fstat)(fd, st);
	return tree_fstat(fd, st);
}

exported int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	if (!tree_active())
		return real(fstatat)(dirfd, path, st, flags);
	return tree_stat(dirfd, path, st, flags);
}

exported int stat64(const char *path, struct stat64 *st)
{
	if (!tree_active())
		return real(stat64)(path, st);
	return tree_stat(AT_FDCWD, path, (struct stat *)st, 0);
}

exported int lstat64(const char *path, struct stat64 *st)
{
	if (!tree_active())
		return real(lstat64)(path, st);
	return tree_stat(AT_FDCWD, path, (struct stat *)st, AT_SYMLINK_NOFOLLOW);
}

exported int fstat64(int fd, struct stat64 *st)
{
	if (!tree_active())
		return real(fstat64)(fd, st);
	return tree_fstat(fd, (struct stat *)st);
}

exported int fstatat64(int dirfd, const char *path, struct stat64 *st, int flags)
{
	if (!tree_active())
		return real(fstatat64)(dirfd, path, st, flags);
	return tree_stat(dirfd, path, (struct stat *)st, flags);
}

/* 0 and 1 are the versions whose structure is struct stat of a 64-bit system. */
#define BAD_VERSION(version) ((version) != 0 && (version) != 1)

exported int __xstat(int version, const char *path, struct stat *st)
{
	if (!tree_active() || BAD_VERSION(version))
		return real(__xstat)(version, path, st);
	return tree_stat(AT_FDCWD, path, st, 0);
}

exported int __xstat64(int version, const char *path, struct stat64 *st)
{
	if (!tree_active() || BAD_VERSION(version))
		return real(__xstat64)(version, path, st);
	return tree_stat(AT_FDCWD, path, (struct stat *)st, 0);
}

exported int __lxstat(int version, const char *path, struct stat *st)
{
	if (!tree_active() || BAD_VERSION(version))
		return real(__lxstat)(version, path, st);
	return tree_stat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

exported int __lxstat64(int version, const char *path, struct stat64 *st)
{
	if (!tree_active() || BAD_VERSION(version))
		return real(__lxstat64)(version, path, st);
	return tree_stat(AT_FDCWD, path, (struct stat *)st, AT_SYMLINK_NOFOLLOW);
}

exported int __fxstat(int version, int fd, struct stat *st)
{
	if (!tree_active() || BAD_VERSION(version))
		return real(__fxstat)(version, fd, st);
	return tree_fstat(fd, st);
}

exported int __fxstat64(int version, int fd, struct stat64 *st)
{
	if (!tree_active() || BAD_VERSION(version))
		return real(__fxstat64)(version, fd, st);
	return tree_fstat(fd, (struct stat *)st);
}

exported int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags)
{
	if (!tree_active() || BAD_VERSION(version))
		return real(__fxstatat)(version, dirfd, path, st, flags);
	return tree_stat(dirfd, path, st, flags);
}

exported int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags)
{
	if (!tree_active() || BAD_VERSION(version))
		return real(__fxstatat64)(version, dirfd, path, st, flags);
	return tree_stat(dirfd, path, (struct stat *)st, flags);
}

/* What tree_describe and a description by the driver change, there and back. */

static void statx_read(const struct statx *stx, struct stat *st)
{
	st->st_dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
	st->st_ino = stx->stx_ino;
	st->st_mode = stx->stx_mode;
	st->st_nlink = stx->stx_nlink;
	st->st_uid = stx->stx_uid;
	st->st_gid = stx->stx_gid;
	st->st_rdev = makedev(stx->stx_rdev_major, stx->stx_rdev_minor);
	st->st_size = (off_t)stx->stx_size;
	st->st_blocks = (blkcnt_t)stx->stx_blocks;
}

static void statx_write(struct statx *stx, const struct stat *st)
{
	stx->stx_dev_major = major(st->st_dev);
	stx->stx_dev_minor = minor(st->st_dev);
	stx->stx_ino = st->st_ino;
	stx->stx_mode = (uint16_t)st->st_mode;
	stx->stx_nlink = (uint32_t)st->st_nlink;
	stx->stx_uid = st->st_uid;
	stx->stx_gid = st->st_gid;
	stx->stx_rdev_major = major(st->st_rdev);
	stx->stx_rdev_minor = minor(st->st_rdev);
	stx->stx_size = (uint64_t)st->st_size;
	stx->stx_blocks = (uint64_t)st->st_blocks;
}

exported int statx(int dirfd, const char *restrict path, int flags, unsigned mask,
		   struct statx *restrict stx)
{
	struct tree_path t;
	const char *mapped;
	struct stat st;
	int ret;

	if (!tree_active())
		return real(statx)(dirfd, path, flags, mask, stx);
	mapped = tree_map(dirfd, path, flags & AT_SYMLINK_NOFOLLOW, &t);
	ret = real(statx)(dirfd, mapped, flags, mask, stx);
	if (ret)
		return ret;
	statx_read(stx, &st);
	if (is_about_descriptor(path, flags))
		descriptor_describe(dirfd, &st);
	else
		tree_describe(&t, &st);
	statx_write(stx, &st);
	return 0;
}
