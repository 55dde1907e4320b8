// SPDX-License-Identifier: BSD-2-Clause
/* Calls that name a file without opening it: permission, symbolic links, attributes, directory. */
#include "preload/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "preload/tree.h"

char *__realpath_chk(const char *path, char *resolved, size_t resolved_len);
ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t buf_len);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t len, size_t buf_len);

exported int access(const char *path, int mode)
{
	struct tree_path t;

	if (!tree_active())
		return real(access)(path, mode);
	return real(access)(tree_map(AT_FDCWD, path, &t), mode);
}

exported int faccessat(int dirfd, const char *path, int mode, int flags)
{
	struct tree_path t;

	if (!tree_active())
		return real(faccessat)(dirfd, path, mode, flags);
	return real(faccessat)(dirfd, tree_map(dirfd, path, &t), mode, flags);
}

exported int euidaccess(const char *path, int mode)
{
	struct tree_path t;

	if (!tree_active())
		return real(euidaccess)(path, mode);
	return real(euidaccess)(tree_map(AT_FDCWD, path, &t), mode);
}

exported int eaccess(const char *path, int mode)
{
	struct tree_path t;

	if (!tree_active())
		return real(eaccess)(path, mode);
	return real(eaccess)(tree_map(AT_FDCWD, path, &t), mode);
}

exported int chdir(const char *path)
{
	struct tree_path t;

	if (!tree_active())
		return real(chdir)(path);
	return real(chdir)(tree_map(AT_FDCWD, path, &t));
}

exported ssize_t readlink(const char *restrict path, char *restrict buf, size_t len)
{
	struct tree_path t;

	if (!tree_active())
		return real(readlink)(path, buf, len);
	return real(readlink)(tree_map(AT_FDCWD, path, &t), buf, len);
}

exported ssize_t readlinkat(int dirfd, const char *restrict path, char *restrict buf, size_t len)
{
	struct tree_path t;

	if (!tree_active())
		return real(readlinkat)(dirfd, path, buf, len);
	return real(readlinkat)(dirfd, tree_map(dirfd, path, &t), buf, len);
}

exported ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t buf_len)
{
	struct tree_path t;

	if (!tree_active())
		return real(__readlink_chk)(path, buf, len, buf_len);
	return real(__readlink_chk)(tree_map(AT_FDCWD, path, &t), buf, len, buf_len);
}

exported ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t len,
				  size_t buf_len)
{
	struct tree_path t;

	if (!tree_active())
		return real(__readlinkat_chk)(dirfd, path, buf, len, buf_len);
	return real(__readlinkat_chk)(dirfd, tree_map(dirfd, path, &t), buf, len, buf_len);
}

/* Gives the answer in the program's terms again. */
static char *path_unmapped(char *path)
{
	if (path)
		tree_unmap(path);
	return path;
}

exported char *realpath(const char *restrict path, char *restrict resolved)
{
	struct tree_path t;

	if (!tree_active())
		return real(realpath)(path, resolved);
	return path_unmapped(real(realpath)(tree_map(AT_FDCWD, path, &t), resolved));
}

exported char *__realpath_chk(const char *path, char *resolved, size_t resolved_len)
{
	struct tree_path t;

	if (!tree_active())
		return real(__realpath_chk)(path, resolved, resolved_len);
	return path_unmapped(
		real(__realpath_chk)(tree_map(AT_FDCWD, path, &t), resolved, resolved_len));
}

exported char *canonicalize_file_name(const char *path)
{
	struct tree_path t;

	if (!tree_active())
		return real(canonicalize_file_name)(path);
	return path_unmapped(real(canonicalize_file_name)(tree_map(AT_FDCWD, path, &t)));
}

/* ls -l asks for access control lists this way and complains about a file that is not there. */

exported ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	struct tree_path t;

	if (!tree_active())
		return real(getxattr)(path, name, value, size);
	return real(getxattr)(tree_map(AT_FDCWD, path, &t), name, value, size);
}

exported ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	struct tree_path t;

	if (!tree_active())
		return real(lgetxattr)(path, name, value, size);
	return real(lgetxattr)(tree_map(AT_FDCWD, path, &t), name, value, size);
}

exported ssize_t listxattr(const char *path, char *list, size_t size)
{
	struct tree_path t;

	if (!tree_active())
		return real(listxattr)(path, list, size);
	return real(listxattr)(tree_map(AT_FDCWD, path, &t), list, size);
}

exported ssize_t llistxattr(const char *path, char *list, size_t size)
{
	struct tree_path t;

	if (!tree_active())
		return real(llistxattr)(path, list, size);
	return real(llistxattr)(tree_map(AT_FDCWD, path, &t), list, size);
}
