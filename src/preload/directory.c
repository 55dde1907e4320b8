// SPDX-License-Identifier: BSD-2-Clause
/*
 * Directories.  One that the machine and the tree have (/dev, /sys/class) is opened as the machine's,
 * and its listing goes on with what only the tree has when the machine's entries end.
 */
#include "preload/libc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "preload/tree.h"

static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one structure, two names");

/* Who has more of them open at a time sees the machine's entries alone in the others. */
#define LISTINGS 64u

struct listing {
	_Atomic(DIR *) dir; /* the machine's, which the program has, or DESCRIPTOR; NULL: free */
	DIR *tree;
	bool in_tree; /* the machine's have ended */
};

static struct listing listings[LISTINGS];
static _Atomic(unsigned) listings_open;

/* A free place is claimed with this, so that nobody finds it before it is complete. */
#define CLAIMED ((DIR *)listings)

static struct listing *listing_find(DIR *dir)
{
	if (likely(!atomic_load_explicit(&listings_open, memory_order_acquire)) || !dir)
		return NULL;
	for (size_t i = 0; i < LISTINGS; i++)
		if (atomic_load_explicit(&listings[i].dir, memory_order_acquire) == dir)
			return &listings[i];
	return NULL;
}

static struct listing *listing_claim(void)
{
	for (size_t i = 0; i < LISTINGS; i++) {
		DIR *none = NULL;

		if (atomic_compare_exchange_strong(&listings[i].dir, &none, CLAIMED))
			return &listings[i];
	}
	return NULL;
}

/* Adds the tree's entries to those of an open directory.  Keeps errno. */
static void listing_begin(DIR *dir, const struct tree_path *t)
{
	struct listing *l = dir && t->merged ? listing_claim() : NULL;
	int saved_errno = errno;

	if (!l)
		return;
	l->tree = real(opendir)(t->text);
	l->in_tree = false;
	if (l->tree)
		atomic_fetch_add_explicit(&listings_open, 1, memory_order_release);
	atomic_store_explicit(&l->dir, l->tree ? dir : NULL, memory_order_release);
	errno = saved_errno;
}

static void listing_end(struct listing *l)
{
	real(closedir)(l->tree);
	atomic_store_explicit(&l->dir, NULL, memory_order_release);
	atomic_fetch_sub_explicit(&listings_open, 1, memory_order_release);
}

static bool is_machines(int fd, const char *name)
{
	struct stat st;

	return !syscall(SYS_newfstatat, fd, name, &st, AT_SYMLINK_NOFOLLOW);
}

/* The next entry that the machine's directory, open as fd, has not, or NULL.  Keeps errno at the end. */
static struct dirent *tree_entry(struct listing *l, int fd)
{
	int saved_errno = errno;
	struct dirent *e;

	do {
		errno = saved_errno;
		e = real(readdir)(l->tree);
	} while (e && is_machines(fd, e->d_name));
	return e;
}

struct dirent *tree_readdir(DIR *dir)
{
	struct listing *l = listing_find(dir);
	int saved_errno = errno;
	struct dirent *e;

	if (!l)
		return real(readdir)(dir);
	if (!l->in_tree) {
		errno = 0;
		e = real(readdir)(dir);
		if (e || errno)
			return e;
		l->in_tree = true;
		errno = saved_errno;
	}
	return tree_entry(l, dirfd(dir));
}

DIR *tree_opendir(const char *path)
{
	struct tree_path t;
	DIR *dir = real(opendir)(tree_map(AT_FDCWD, path, false, &t));

	listing_begin(dir, &t);
	return dir;
}

int tree_closedir(DIR *dir)
{
	struct listing *l = listing_find(dir);

	if (l)
		listing_end(l);
	return real(closedir)(dir);
}

exported DIR *opendir(const char *path)
{
	return tree_opendir(path);
}

exported DIR *fdopendir(int fd)
{
	DIR *dir = real(fdopendir)(fd);
	struct tree_path t;

	t.merged = false;
	if (dir)
		(void)tree_map(fd, ".", false, &t);
	listing_begin(dir, &t);
	return dir;
}

exported int closedir(DIR *dir)
{
	return tree_closedir(dir);
}

exported struct dirent *readdir(DIR *dir)
{
	return tree_readdir(dir);
}

exported struct dirent64 *readdir64(DIR *dir)
{
	return (struct dirent64 *)tree_readdir(dir);
}

/* ---- directories as descriptors ---- */

/*
 * The tree's entries follow when the kernel has none left.  Their listing ends with them, or when the
 * kernel has some again: the program has gone back to the start, or the number is another file's.
 */
#define DESCRIPTOR(fd) ((DIR *)((uintptr_t)(fd) + 1))

static struct listing *descriptor_begin(int fd)
{
	struct tree_path t;

	(void)tree_map(fd, ".", false, &t);
	listing_begin(DESCRIPTOR(fd), &t);
	return listing_find(DESCRIPTOR(fd));
}

/* Takes the machine's entries out of n bytes of entries.  Returns how many bytes are left. */
static size_t entries_filter(int fd, char *buf, size_t n)
{
	size_t kept = 0;

	for (size_t at = 0, bytes; at < n; at += bytes) {
		const struct dirent *e = (const struct dirent *)(buf + at);

		bytes = e->d_reclen;
		if (is_machines(fd, e->d_name))
			continue;
		memmove(buf + kept, buf + at, bytes);
		kept += bytes;
	}
	return kept;
}

/* The kernel writes to the program's buffer, which may be none. */
static ssize_t tree_entries(struct listing *l, int fd, void *buf, size_t size)
{
	int saved_errno = errno;
	ssize_t n, kept = 0;

	while ((n = real(getdents64)(dirfd(l->tree), buf, size)) > 0) {
		kept = (ssize_t)entries_filter(fd, buf, (size_t)n);
		if (kept)
			break;
	}
	if (!n)
		listing_end(l);
	if (n >= 0)
		errno = saved_errno;
	return n > 0 ? kept : n;
}

static ssize_t entries_continue(int fd, void *buf, size_t size, ssize_t machines)
{
	struct listing *l;

	if (machines < 0 || !tree_active())
		return machines;
	l = listing_find(DESCRIPTOR(fd));
	if (l && machines)
		listing_end(l);
	if (!l && !machines)
		l = descriptor_begin(fd);
	return l && !machines ? tree_entries(l, fd, buf, size) : machines;
}

exported ssize_t getdents64(int fd, void *buf, size_t size)
{
	return entries_continue(fd, buf, size, real(getdents64)(fd, buf, size));
}

exported ssize_t getdirentries(int fd, char *restrict buf, size_t size, off_t *restrict place)
{
	return entries_continue(fd, buf, size, real(getdirentries)(fd, buf, size, place));
}

exported ssize_t getdirentries64(int fd, char *restrict buf, size_t size, __off64_t *restrict place)
{
	return entries_continue(fd, buf, size, real(getdirentries64)(fd, buf, size, place));
}

/* ---- the place in a directory ---- */

/* Places among the tree's entries are negative. */
#define TREE_PLACE(place) (-2 - (place))

exported void rewinddir(DIR *dir)
{
	struct listing *l = listing_find(dir);

	if (l) {
		real(rewinddir)(l->tree);
		l->in_tree = false;
	}
	real(rewinddir)(dir);
}

exported long telldir(DIR *dir)
{
	struct listing *l = listing_find(dir);

	return l && l->in_tree ? TREE_PLACE(real(telldir)(l->tree)) : real(telldir)(dir);
}

exported void seekdir(DIR *dir, long place)
{
	struct listing *l = listing_find(dir);

	if (l)
		l->in_tree = place < 0;
	if (l && place < 0) {
		real(seekdir)(l->tree, TREE_PLACE(place));
		return;
	}
	if (l)
		real(rewinddir)(l->tree);
	real(seekdir)(dir, place);
}

/* ---- all entries at once ---- */

static void entries_free(struct dirent **list, size_t n)
{
	while (n)
		free(list[--n]);
	free(list);
}

static bool entry_add(struct dirent ***list, size_t n, const struct dirent *e)
{
	struct dirent **more, *copy = malloc(e->d_reclen);

	if (!copy)
		return false;
	memcpy(copy, e, e->d_reclen);
	/* Doubled when n is a power of two. */
	more = n & (n - 1) ? *list : realloc(*list, (n ? 2 * n : 1) * sizeof(**list));
	if (!more) {
		free(copy);
		return false;
	}
	*list = more;
	more[n] = copy;
	return true;
}

typedef int (*entry_filter)(const struct dirent *);
typedef int (*entry_compare)(const struct dirent **, const struct dirent **);

static int merged_scan(DIR *dir, struct dirent ***list, entry_filter filter, entry_compare compare)
{
	struct dirent **all = NULL, *e;
	int saved_errno = errno;
	size_t n = 0;

	errno = 0;
	while ((e = tree_readdir(dir))) {
		if (filter && !filter(e))
			continue;
		if (!entry_add(&all, n, e)) {
			errno = ENOMEM;
			break;
		}
		n++;
		errno = 0;
	}
	if (errno) {
		saved_errno = errno;
		entries_free(all, n);
		errno = saved_errno;
		return -1;
	}
	errno = saved_errno;
	if (compare && n)
		qsort(all, n, sizeof(*all), (int (*)(const void *, const void *))compare);
	*list = all;
	return (int)n;
}

static int tree_scandir(int dirfd, const char *path, struct dirent ***list, entry_filter filter,
			entry_compare compare)
{
	struct tree_path t;
	const char *mapped = tree_map(dirfd, path, false, &t);
	DIR *dir;
	int n;

	if (!t.merged)
		return real(scandirat)(dirfd, mapped, list, filter, compare);
	dir = tree_opendir(mapped);
	if (!dir)
		return -1;
	n = merged_scan(dir, list, filter, compare);
	(void)tree_closedir(dir);
	return n;
}

exported int scandir(const char *path, struct dirent ***list, entry_filter filter,
		     entry_compare compare)
{
	return tree_scandir(AT_FDCWD, path, list, filter, compare);
}

exported int scandirat(int dirfd, const char *path, struct dirent ***list, entry_filter filter,
		       entry_compare compare)
{
	return tree_scandir(dirfd, path, list, filter, compare);
}

typedef int (*entry_filter64)(const struct dirent64 *);
typedef int (*entry_compare64)(const struct dirent64 **, const struct dirent64 **);

exported int scandir64(const char *path, struct dirent64 ***list, entry_filter64 filter,
		       entry_compare64 compare)
{
	return tree_scandir(AT_FDCWD, path, (struct dirent ***)list, (entry_filter)filter,
			    (entry_compare)compare);
}

exported int scandirat64(int dirfd, const char *path, struct dirent64 ***list,
			 entry_filter64 filter, entry_compare64 compare)
{
	return tree_scandir(dirfd, path, (struct dirent ***)list, (entry_filter)filter,
			    (entry_compare)compare);
}
