// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls that name a file without opening it: permission, symbolic links, attributes, directory.  Most
 * only need the path by which the kernel finds the file, so they are a line each.
 */
#include "preload/libc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "preload/tree.h"

char *__realpath_chk(const char *path, char *resolved, size_t resolved_len);
ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t buf_len);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t len, size_t buf_len);
char *__getcwd_chk(char *buf, size_t size, size_t buf_size);

/* Defines a function whose first argument is the path; what follows 'parameters' are the others. */
#define TAKES_PATH(keep_last, type, name, parameters, ...)                               \
	exported type name parameters                                                    \
	{                                                                                \
		struct tree_path t;                                                      \
                                                                                         \
		return real(name)(tree_map(AT_FDCWD, path, keep_last, &t) __VA_OPT__(, ) \
					  __VA_ARGS__);                                  \
	}

TAKES_PATH(false, int, access, (const char *path, int mode), mode)
TAKES_PATH(false, int, euidaccess, (const char *path, int mode), mode)
TAKES_PATH(false, int, eaccess, (const char *path, int mode), mode)
TAKES_PATH(false, int, statfs, (const char *path, struct statfs *fs), fs)
TAKES_PATH(false, int, statfs64, (const char *path, struct statfs64 *fs), fs)
TAKES_PATH(false, int, statvfs, (const char *restrict path, struct statvfs *restrict fs), fs)
TAKES_PATH(false, int, statvfs64, (const char *restrict path, struct statvfs64 *restrict fs), fs)
TAKES_PATH(false, long, pathconf, (const char *path, int name), name)

/* ls -l asks for access control lists this way and complains about a file that is not there. */
TAKES_PATH(false, ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size),
	   name, value, size)
TAKES_PATH(true, ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size),
	   name, value, size)
TAKES_PATH(false, ssize_t, listxattr, (const char *path, char *list, size_t size), list, size)
TAKES_PATH(true, ssize_t, llistxattr, (const char *path, char *list, size_t size), list, size)

exported int faccessat(int dirfd, const char *path, int mode, int flags)
{
	struct tree_path t;
	const char *mapped = tree_map(dirfd, path, flags & AT_SYMLINK_NOFOLLOW, &t);

	return real(faccessat)(dirfd, mapped, mode, flags);
}

exported int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	struct tree_path t;

	return real(inotify_add_watch)(fd, tree_map(AT_FDCWD, path, mask & IN_DONT_FOLLOW, &t),
				       mask);
}

/* ---- the current directory, and answers that are paths ---- */

int tree_chdir(const char *path)
{
	struct tree_path t;
	int ret = real(chdir)(tree_map(AT_FDCWD, path, false, &t));

	if (!ret)
		tree_directory_changed();
	return ret;
}

exported int chdir(const char *path)
{
	return tree_chdir(path);
}

/* Gives the answer in the program's terms again. */
static char *path_unmapped(char *path)
{
	if (path)
		(void)tree_unmap(path);
	return path;
}

exported char *getcwd(char *buf, size_t size)
{
	return path_unmapped(real(getcwd)(buf, size));
}

exported char *__getcwd_chk(char *buf, size_t size, size_t buf_size)
{
	return path_unmapped(real(__getcwd_chk)(buf, size, buf_size));
}

exported char *get_current_dir_name(void)
{
	return path_unmapped(real(get_current_dir_name)());
}

exported char *realpath(const char *restrict path, char *restrict resolved)
{
	struct tree_path t;

	return path_unmapped(real(realpath)(tree_map(AT_FDCWD, path, false, &t), resolved));
}

exported char *__realpath_chk(const char *path, char *resolved, size_t resolved_len)
{
	struct tree_path t;

	return path_unmapped(
		real(__realpath_chk)(tree_map(AT_FDCWD, path, false, &t), resolved, resolved_len));
}

exported char *canonicalize_file_name(const char *path)
{
	struct tree_path t;

	return path_unmapped(real(canonicalize_file_name)(tree_map(AT_FDCWD, path, false, &t)));
}

/* The links of /proc to the current directory and to open files have the tree's directory in front. */
static bool may_name_tree(const char *path)
{
	return path[0] != '/' || !strncmp(path, "/proc/", strlen("/proc/"));
}

/* That the kernel has read the path and written the answer shows that it is there to be read and
 * written. */
static ssize_t tree_readlink(int dirfd, const char *path, char *buf, size_t len)
{
	struct tree_path t;
	const char *mapped = tree_map(dirfd, path, true, &t);
	ssize_t n = real(readlinkat)(dirfd, mapped, buf, len), whole;
	char text[PATH_MAX];

	if (n <= 0 || t.below || buf[0] != '/' || !tree_active() || !may_name_tree(path))
		return n;
	whole = real(readlinkat)(dirfd, mapped, text, sizeof(text) - 1);
	if (whole < n)
		return n;
	text[whole] = '\0';
	if (!tree_unmap(text))
		return n;
	whole = (ssize_t)strlen(text);
	n = whole < n ? whole : n;
	memcpy(buf, text, (size_t)n);
	return n;
}

exported ssize_t readlink(const char *restrict path, char *restrict buf, size_t len)
{
	return tree_readlink(AT_FDCWD, path, buf, len);
}

exported ssize_t readlinkat(int dirfd, const char *restrict path, char *restrict buf, size_t len)
{
	return tree_readlink(dirfd, path, buf, len);
}

/* A length beyond the buffer is an error of the program, which the real function reports. */
exported ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t buf_len)
{
	if (len > buf_len)
		return real(__readlink_chk)(path, buf, len, buf_len);
	return tree_readlink(AT_FDCWD, path, buf, len);
}

exported ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t len,
				  size_t buf_len)
{
	if (len > buf_len)
		return real(__readlinkat_chk)(dirfd, path, buf, len, buf_len);
	return tree_readlink(dirfd, path, buf, len);
}
