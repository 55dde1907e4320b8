// SPDX-License-Identifier: BSD-2-Clause
/*
 * glob(3) reads directories inside libc, which does not call our opendir.  It lets its caller bring
 * the functions (GLOB_ALTDIRFUNC), so we give it the mapped ones.
 */
#include "preload/libc.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/tree.h"

static void *open_directory(const char *path)
{
	return tree_opendir(path);
}

static void close_directory(void *dir)
{
	(void)tree_closedir(dir);
}

static struct dirent *read_directory(void *dir)
{
	return tree_readdir(dir);
}

static struct dirent64 *read_directory64(void *dir)
{
	return (struct dirent64 *)tree_readdir(dir);
}

static int stat_file(const char *path, struct stat *st)
{
	return tree_stat(AT_FDCWD, path, st, 0);
}

static int stat_file64(const char *path, struct stat64 *st)
{
	return tree_stat(AT_FDCWD, path, (struct stat *)st, 0);
}

static int stat_link(const char *path, struct stat *st)
{
	return tree_stat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static int stat_link64(const char *path, struct stat64 *st)
{
	return tree_stat(AT_FDCWD, path, (struct stat *)st, AT_SYMLINK_NOFOLLOW);
}

static bool is_replaced(int flags)
{
	return tree_active() && !(flags & GLOB_ALTDIRFUNC);
}

exported int glob(const char *restrict pattern, int flags, int (*on_error)(const char *, int),
		  glob_t *restrict g)
{
	int ret;

	if (!is_replaced(flags))
		return real(glob)(pattern, flags, on_error, g);
	g->gl_opendir = open_directory;
	g->gl_closedir = close_directory;
	g->gl_readdir = read_directory;
	g->gl_stat = stat_file;
	g->gl_lstat = stat_link;
	ret = real(glob)(pattern, flags | GLOB_ALTDIRFUNC, on_error, g);
	g->gl_flags &= ~GLOB_ALTDIRFUNC;
	return ret;
}

exported int glob64(const char *restrict pattern, int flags, int (*on_error)(const char *, int),
		    glob64_t *restrict g)
{
	int ret;

	if (!is_replaced(flags))
		return real(glob64)(pattern, flags, on_error, g);
	g->gl_opendir = open_directory;
	g->gl_closedir = close_directory;
	g->gl_readdir = read_directory64;
	g->gl_stat = stat_file64;
	g->gl_lstat = stat_link64;
	ret = real(glob64)(pattern, flags | GLOB_ALTDIRFUNC, on_error, g);
	g->gl_flags &= ~GLOB_ALTDIRFUNC;
	return ret;
}
