// SPDX-License-Identifier: BSD-2-Clause
/*
 * Directories.  One that the machine and the tree have (/dev, /sys/class) is opened as the machine's,
 * and its listing goes on with what only the tree has when the machine's entries end.
 */
#include "preload/libc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"
#include "driver/cdev.h"
#include "fabric/device_tree.h"
#include "preload/tree.h"

static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one structure, two names");

/* Who has more of them open at a time sees the machine's entries alone in the others. */
#define LISTINGS 64u

struct listing {
	_Atomic(DIR *) dir; /* the machine's, which the program has, or DESCRIPTOR; NULL: free */
	DIR *tree;	    /* NULL: a descriptor's listing is over */
	bool in_tree;	    /* the machine's have ended */
	off_t at;	    /* how many of the tree's entries have been read */
	off_t end;	    /* the place of a descriptor behind the machine's entries */
};

/*
 * A place among the tree's entries says how many come before it.  No file system of Linux has such
 * places: the hashes of ext4 end below, but for its end of a directory, which is above.
 */
#define TREE_PLACE ((off_t)0x7fffffff00000000)

static bool is_tree_place(off_t place)
{
	return place >= TREE_PLACE && place - TREE_PLACE < INT32_MAX;
}

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
	l->at = 0;
	if (l->tree)
		atomic_fetch_add_explicit(&listings_open, 1, memory_order_release);
	atomic_store_explicit(&l->dir, l->tree ? dir : NULL, memory_order_release);
	errno = saved_errno;
}

static void listing_end(struct listing *l)
{
	if (l->tree)
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
		l->at += e != NULL;
	} while (e && is_machines(fd, e->d_name));
	if (e)
		e->d_off = TREE_PLACE + l->at;
	return e;
}

/* Goes to the tree's entry before which `at` others come. */
static void tree_seek(struct listing *l, off_t at)
{
	real(rewinddir)(l->tree);
	for (l->at = 0; l->at < at && real(readdir)(l->tree); l->at++)
		;
	/* The descriptor, too, of which more has been read. */
	real(seekdir)(l->tree, real(telldir)(l->tree));
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
 * The tree's entries follow when the kernel has none left.  Their listing ends when the kernel has some
 * again, because the program has gone back, or when the number is another file's.
 */
#define DESCRIPTOR(fd) ((DIR *)((uintptr_t)(fd) + 1))

static int descriptor_of(DIR *dir)
{
	return (int)((uintptr_t)dir - 1);
}

/* Tells whether the descriptor stands where the listing left it, in a directory of the same name. */
static bool descriptor_stands(int fd, const struct listing *l)
{
	struct stat st, tree;
	struct tree_path t;

	if (real(lseek)(fd, 0, SEEK_CUR) != l->end)
		return false;
	(void)tree_map(fd, ".", false, &t);
	return t.merged &&
	       (!l->tree || (!real(fstat)(dirfd(l->tree), &tree) && !real(stat)(t.text, &st) &&
			     st.st_ino == tree.st_ino && st.st_dev == tree.st_dev));
}

/* Keeps errno. */
static struct listing *descriptor_find(int fd)
{
	struct listing *l = listing_find(DESCRIPTOR(fd));
	int saved_errno = errno;

	if (l && !descriptor_stands(fd, l)) {
		listing_end(l);
		l = NULL;
	}
	errno = saved_errno;
	return l;
}

/* Ends the listings of descriptors that were closed in between, if there is no room for another. */
static void descriptors_forget(void)
{
	if (atomic_load_explicit(&listings_open, memory_order_relaxed) < LISTINGS)
		return;
	for (size_t i = 0; i < LISTINGS; i++) {
		DIR *dir = atomic_load_explicit(&listings[i].dir, memory_order_acquire);

		if ((uintptr_t)dir <= INT_MAX && dir)
			(void)descriptor_find(descriptor_of(dir));
	}
}

static struct listing *descriptor_begin(int fd)
{
	struct listing *l;
	struct tree_path t;

	(void)tree_map(fd, ".", false, &t);
	if (!t.merged)
		return NULL;
	descriptors_forget();
	listing_begin(DESCRIPTOR(fd), &t);
	l = listing_find(DESCRIPTOR(fd));
	if (l)
		l->end = real(lseek)(fd, 0, SEEK_CUR);
	return l;
}

/* Takes the machine's entries out of n bytes of entries.  Returns how many bytes are left. */
static size_t entries_filter(struct listing *l, int fd, char *buf, size_t n)
{
	struct dirent *last = NULL;
	size_t kept = 0;

	for (size_t at = 0, bytes; at < n; at += bytes) {
		const struct dirent *e = (const struct dirent *)(buf + at);

		bytes = e->d_reclen;
		l->at++;
		if (!is_machines(fd, e->d_name)) {
			last = memmove(buf + kept, buf + at, bytes);
			kept += bytes;
		}
		if (last)
			last->d_off = TREE_PLACE + l->at;
	}
	return kept;
}

/* The kernel writes to the program's buffer, which may be none. */
static ssize_t tree_entries(struct listing *l, int fd, void *buf, size_t size)
{
	int saved_errno = errno;
	ssize_t n = 0, kept = 0;

	while (l->tree && (n = real(getdents64)(dirfd(l->tree), buf, size)) > 0) {
		kept = (ssize_t)entries_filter(l, fd, buf, (size_t)n);
		if (kept)
			break;
	}
	if (!n && l->tree) {
		real(closedir)(l->tree);
		l->tree = NULL;
	}
	if (n >= 0)
		errno = saved_errno;
	return n > 0 ? kept : n;
}

/* Goes on where the machine's entries end.  A place of the machine becomes the tree's, if it is one there. */
static ssize_t entries_continue(int fd, void *buf, size_t size, ssize_t machines, off_t *place)
{
	struct listing *l;

	if (machines < 0 || !tree_active())
		return machines;
	if (machines) {
		l = listing_find(DESCRIPTOR(fd));
		if (l)
			listing_end(l);
		return machines;
	}
	l = descriptor_find(fd);
	if (!l)
		l = descriptor_begin(fd);
	if (!l)
		return 0;
	if (place)
		*place = TREE_PLACE + l->at;
	return tree_entries(l, fd, buf, size);
}

exported ssize_t getdents64(int fd, void *buf, size_t size)
{
	return entries_continue(fd, buf, size, real(getdents64)(fd, buf, size), NULL);
}

exported ssize_t getdirentries(int fd, char *restrict buf, size_t size, off_t *restrict place)
{
	return entries_continue(fd, buf, size, real(getdirentries)(fd, buf, size, place), place);
}

exported ssize_t getdirentries64(int fd, char *restrict buf, size_t size, __off64_t *restrict place)
{
	return entries_continue(fd, buf, size, real(getdirentries64)(fd, buf, size, place), place);
}

/* ---- the place in a directory ---- */

exported void rewinddir(DIR *dir)
{
	struct listing *l = listing_find(dir);

	if (l) {
		tree_seek(l, 0);
		l->in_tree = false;
	}
	real(rewinddir)(dir);
}

exported long telldir(DIR *dir)
{
	struct listing *l = listing_find(dir);

	return l && l->in_tree ? TREE_PLACE + l->at : real(telldir)(dir);
}

exported void seekdir(DIR *dir, long place)
{
	struct listing *l = listing_find(dir);

	if (l) {
		l->in_tree = is_tree_place(place);
		tree_seek(l, l->in_tree ? place - TREE_PLACE : 0);
	}
	if (!l || !l->in_tree)
		real(seekdir)(dir, place);
}

/* Goes behind the machine's entries of a directory that is merged.  NULL: it is none. */
static struct listing *descriptor_end(int fd)
{
	_Alignas(struct dirent) char entries[4096];
	struct tree_path t;
	ssize_t n;

	(void)tree_map(fd, ".", false, &t);
	if (!t.merged)
		return NULL;
	do
		n = real(getdents64)(fd, entries, sizeof(entries));
	while (n > 0);
	return n ? NULL : descriptor_begin(fd);
}

/* False: the place is none of the tree's, or the descriptor no directory that is merged. */
static bool descriptor_seek(int fd, struct listing *l, off_t place)
{
	int saved_errno = errno;

	if (!is_tree_place(place))
		return false;
	if (l && !l->tree) {
		listing_end(l);
		l = NULL;
	}
	if (!l)
		l = descriptor_end(fd);
	if (l)
		tree_seek(l, place - TREE_PLACE);
	errno = saved_errno;
	return l != NULL;
}

static off_t directory_lseek(int fd, off_t offset, int whence)
{
	struct listing *l = descriptor_find(fd);
	off_t place = offset;

	if (l && whence == SEEK_CUR) {
		if (__builtin_add_overflow(TREE_PLACE + l->at, offset, &place)) {
			errno = EINVAL;
			return -1;
		}
		whence = SEEK_SET;
	}
	if (whence == SEEK_SET && tree_active() && descriptor_seek(fd, l, place))
		return place;
	place = real(lseek)(fd, place, whence);
	if (l && place >= 0)
		listing_end(l);
	return place;
}

/* A device has no place (no_llseek); one for a driver of a PCI function keeps it (noop_llseek).  An attribute
 * ends where its description says, whatever the length of the text. */
static off_t file_lseek(int fd, off_t offset, int whence)
{
	struct stat st;

	if (tree_fstat(fd, &st))
		return -1;
	if (S_ISCHR(st.st_mode) && major(st.st_rdev) == UIO_MAJOR)
		return 0;
	if (S_ISCHR(st.st_mode)) {
		errno = ESPIPE;
		return -1;
	}
	if (S_ISREG(st.st_mode) && whence == SEEK_END &&
	    !__builtin_add_overflow(st.st_size, offset, &offset))
		whence = SEEK_SET;
	return real(lseek)(fd, offset, whence);
}

/* Attributes of sysfs have no place behind the most that a 32-bit system has. */
#define ATTRIBUTE_MOST INT32_MAX

static bool is_attribute(int fd)
{
	int saved_errno = errno;
	struct stat st;
	bool is = tree_has_descriptor(fd) && !tree_fstat(fd, &st) && S_ISREG(st.st_mode);

	errno = saved_errno;
	return is;
}

static off_t tree_lseek(int fd, off_t offset, int whence)
{
	if (unlikely(offset > ATTRIBUTE_MOST) && is_attribute(fd)) {
		errno = EINVAL;
		return -1;
	}
	if (cdev_is_ours(fd) || (whence == SEEK_END && tree_has_descriptor(fd)))
		return file_lseek(fd, offset, whence);
	return directory_lseek(fd, offset, whence);
}

exported off_t lseek(int fd, off_t offset, int whence)
{
	return tree_lseek(fd, offset, whence);
}

exported __off64_t lseek64(int fd, __off64_t offset, int whence)
{
	return tree_lseek(fd, offset, whence);
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
