// SPDX-License-Identifier: BSD-2-Clause
/*
 * ftw(3) and nftw(3) walk inside the C library, which knows nothing of the tree.  So they walk the
 * tree's directory, and the program's function gets the paths and descriptions of its view.  Of a
 * directory that the machine has, too, they see the machine's entries alone.
 */
#include "preload/libc.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/tree.h"

typedef int (*nftw_function)(const char *, const struct stat *, int, struct FTW *);
typedef int (*ftw_function)(const char *, const struct stat *, int);

struct tree_walk {
	nftw_function visit;
	ftw_function visit_plain;
	const char *path; /* the program's, and as long as that is without slashes at its end */
	size_t path_len;
	size_t mapped_len; /* of what the C library has in its place */
	size_t root_len;   /* the part of that which is the host's directory */
};

static _Thread_local const struct tree_walk *walk_now;

static size_t length_without_slashes(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return n;
}

static int visit_entry(const char *path, const struct stat *st, int type, struct FTW *place)
{
	const struct tree_walk *w = walk_now;
	struct tree_path t = {.below = path + w->root_len + 1};
	struct FTW there = *place;
	struct stat look = *st;
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%.*s%s", (int)w->path_len, w->path, path + w->mapped_len);
	there.base += (int)w->path_len - (int)w->mapped_len;
	if (type != FTW_NS)
		tree_describe(&t, &look);
	return w->visit ? w->visit(name, &look, type, &there) : w->visit_plain(name, &look, type);
}

/* Gives false if the C library can walk by itself. */
static bool tree_walk_begin(struct tree_walk *w, const char *path, const char *mapped,
			    const struct tree_path *t)
{
	if (!t->below)
		return false;
	w->path = path;
	w->path_len = length_without_slashes(path);
	w->mapped_len = length_without_slashes(mapped);
	w->root_len = (size_t)(t->below - 1 - t->text);
	return true;
}

static int walk_run(const struct tree_walk *w, const char *mapped, int descriptors, int flags)
{
	const struct tree_walk *outer = walk_now;
	int ret;

	walk_now = w;
	ret = real(nftw)(mapped, visit_entry, descriptors, flags);
	walk_now = outer;
	return ret;
}

static int tree_nftw(const char *path, nftw_function function, int descriptors, int flags)
{
	struct tree_walk w = {.visit = function};
	struct tree_path t;
	const char *mapped = tree_map(AT_FDCWD, path, flags & FTW_PHYS, &t);

	return tree_walk_begin(&w, path, mapped, &t)
		       ? walk_run(&w, mapped, descriptors, flags)
		       : real(nftw)(mapped, function, descriptors, flags);
}

static int tree_ftw(const char *path, ftw_function function, int descriptors)
{
	struct tree_walk w = {.visit_plain = function};
	struct tree_path t;
	const char *mapped = tree_map(AT_FDCWD, path, false, &t);

	return tree_walk_begin(&w, path, mapped, &t) ? walk_run(&w, mapped, descriptors, 0)
						     : real(ftw)(mapped, function, descriptors);
}

exported int nftw(const char *path, nftw_function function, int descriptors, int flags)
{
	return tree_nftw(path, function, descriptors, flags);
}

exported int ftw(const char *path, ftw_function function, int descriptors)
{
	return tree_ftw(path, function, descriptors);
}

exported int nftw64(const char *path,
		    int (*function)(const char *, const struct stat64 *, int, struct FTW *),
		    int descriptors, int flags)
{
	return tree_nftw(path, (nftw_function)function, descriptors, flags);
}

exported int ftw64(const char *path, int (*function)(const char *, const struct stat64 *, int),
		   int descriptors)
{
	return tree_ftw(path, (ftw_function)function, descriptors);
}
