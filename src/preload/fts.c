// SPDX-License-Identifier: BSD-2-Clause
/*
 * fts(3) walks inside the C library, which knows nothing of the tree.  So a walk that begins in the
 * program's view is ours as a whole, and every other one is the C library's.  Ours asks for each file
 * by its path, as opendir and stat of the program would.  It never changes the current directory,
 * which fts(3) leaves open, so the path by which the program reaches a file is its path.
 */
#include "preload/libc.h"

#include "preload/fts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "preload/tree.h"

static_assert(sizeof(FTS) == sizeof(FTS64) && sizeof(FTSENT) == sizeof(FTSENT64),
	      "one structure, two names");

/* In fts_options, of which the C library uses few bits: the walk is ours. */
#define WALK_IS_OURS 0x40000000

/* Behind the FTSENT are the rest of its name, and its path. */
struct entry {
	struct stat look;
	FTSENT e;
};

/* Makes the entry of a name in a directory, or of a path with which the walk begins. */
static FTSENT *entry_make(FTSENT *parent, const char *name)
{
	size_t dir_len = parent ? parent->fts_pathlen : 0, name_len = strlen(name);
	bool slash = dir_len && parent->fts_path[dir_len - 1] != '/';
	size_t path_len = dir_len + slash + name_len;
	struct entry *entry;
	char *text;

	if (path_len > USHRT_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	entry = calloc(1, sizeof(*entry) + name_len + path_len + 2);
	if (!entry)
		return NULL;
	text = (char *)entry + offsetof(struct entry, e.fts_name);
	memcpy(text, name, name_len + 1);
	text += name_len + 1;
	entry->e.fts_path = entry->e.fts_accpath = text;
	if (dir_len)
		memcpy(text, parent->fts_path, dir_len);
	if (slash)
		text[dir_len] = '/';
	memcpy(text + path_len - name_len, name, name_len + 1);
	entry->e.fts_pathlen = (unsigned short)path_len;
	entry->e.fts_namelen = (unsigned short)name_len;
	entry->e.fts_level = parent ? (short)(parent->fts_level + 1) : FTS_ROOTPARENTLEVEL;
	entry->e.fts_parent = parent;
	entry->e.fts_statp = &entry->look;
	entry->e.fts_instr = FTS_NOINSTR;
	return &entry->e;
}

/* Returns the next one of the list. */
static FTSENT *entry_drop(FTSENT *e)
{
	FTSENT *next = e->fts_link;

	free(container_of(e, struct entry, e));
	return next;
}

static void list_drop(FTSENT *e)
{
	while (e)
		e = entry_drop(e);
}

static unsigned short directory_kind(FTSENT *e)
{
	if (e->fts_level > FTS_ROOTLEVEL && text_is_dots(e->fts_name))
		return FTS_DOT;
	for (FTSENT *up = e->fts_parent; up->fts_level >= FTS_ROOTLEVEL; up = up->fts_parent)
		if (up->fts_ino == e->fts_ino && up->fts_dev == e->fts_dev) {
			e->fts_cycle = up;
			return FTS_DC;
		}
	return FTS_D;
}

/* Describes the file, and says what it is. */
static unsigned short entry_look(FTSENT *e, bool follow)
{
	struct stat *st = e->fts_statp;

	if (tree_stat(AT_FDCWD, e->fts_path, st, follow ? 0 : AT_SYMLINK_NOFOLLOW)) {
		e->fts_errno = errno;
		if (follow && !tree_stat(AT_FDCWD, e->fts_path, st, AT_SYMLINK_NOFOLLOW)) {
			e->fts_errno = 0;
			return FTS_SLNONE;
		}
		memset(st, 0, sizeof(*st));
		return FTS_NS;
	}
	e->fts_dev = st->st_dev;
	e->fts_ino = st->st_ino;
	e->fts_nlink = st->st_nlink;
	if (S_ISDIR(st->st_mode))
		return directory_kind(e);
	return S_ISLNK(st->st_mode) ? FTS_SL : S_ISREG(st->st_mode) ? FTS_F : FTS_DEFAULT;
}

/* ---- lists ---- */

/* Sorts by the program's function.  Without memory, the order stays. */
static void list_sort(const FTS *f, FTSENT **list, size_t n)
{
	FTSENT **all = f->fts_compar && n > 1 ? malloc(n * sizeof(FTSENT *)) : NULL;
	size_t i = 0;

	if (!all)
		return;
	for (FTSENT *e = *list; e; e = e->fts_link)
		all[i++] = e;
	qsort(all, n, sizeof(FTSENT *), f->fts_compar);
	for (i = 0; i < n; i++) {
		*list = all[i];
		list = &all[i]->fts_link;
	}
	*list = NULL;
	free(all);
}

/* Tells whether the walk can do without a description: it only has to know the directories. */
static bool needs_no_look(const FTS *f, const struct dirent *d)
{
	return f->fts_options & FTS_NAMEONLY ||
	       (f->fts_options & FTS_NOSTAT && f->fts_options & FTS_PHYSICAL &&
		d->d_type != DT_DIR && d->d_type != DT_UNKNOWN);
}

/*
 * Makes f->fts_child of the entries of a directory.  False, with errno set: it cannot be opened.  What
 * goes wrong later is the directory's error, of which the program hears on its way back.
 */
static bool children_read(FTS *f, FTSENT *parent)
{
	DIR *dir = tree_opendir(parent->fts_path);
	FTSENT **end = &f->fts_child;
	const struct dirent *d;
	size_t n = 0;

	if (!dir)
		return false;
	errno = 0;
	while ((d = tree_readdir(dir))) {
		if (text_is_dots(d->d_name) && !(f->fts_options & FTS_SEEDOT))
			continue;
		*end = entry_make(parent, d->d_name);
		if (!*end)
			break;
		(*end)->fts_info = needs_no_look(f, d)
					   ? FTS_NSOK
					   : entry_look(*end, f->fts_options & FTS_LOGICAL);
		end = &(*end)->fts_link;
		n++;
		errno = 0;
	}
	if (errno)
		parent->fts_errno = errno;
	(void)tree_closedir(dir);
	list_sort(f, &f->fts_child, n);
	return true;
}

static void children_drop(FTS *f)
{
	list_drop(f->fts_child);
	f->fts_child = NULL;
	f->fts_options &= ~FTS_NAMEONLY;
}

/* ---- the walk ---- */

/* A path with which the walk begins is called by its last name from now on. */
static void root_begin(FTS *f, FTSENT *e)
{
	const char *slash = strrchr(e->fts_name, '/');
	size_t n = slash ? strlen(slash + 1) : 0;

	f->fts_dev = e->fts_dev;
	if (!slash || (slash == e->fts_name && !n))
		return;
	memmove(e->fts_name, slash + 1, n + 1);
	e->fts_namelen = (unsigned short)n;
}

/* Goes to the next of these entries, or back up to their directory. */
static FTSENT *walk_to(FTS *f, FTSENT *e, FTSENT *parent)
{
	while (e && e->fts_instr == FTS_SKIP)
		e = entry_drop(e);
	if (e && e->fts_level == FTS_ROOTLEVEL)
		root_begin(f, e);
	if (e && e->fts_instr == FTS_FOLLOW) {
		e->fts_instr = FTS_NOINSTR;
		e->fts_info = entry_look(e, true);
	}
	if (!e && parent->fts_level == FTS_ROOTPARENTLEVEL) {
		(void)entry_drop(parent);
		errno = 0;
	} else if (!e) {
		parent->fts_info = parent->fts_errno ? FTS_ERR : FTS_DP;
		e = parent;
	}
	return f->fts_cur = e;
}

static FTSENT *walk_down(FTS *f, FTSENT *dir)
{
	FTSENT *first;

	if (f->fts_options & FTS_NAMEONLY)
		children_drop(f);
	if (!f->fts_child && !children_read(f, dir)) {
		dir->fts_errno = errno;
		dir->fts_info = FTS_DNR;
		return dir;
	}
	first = f->fts_child;
	f->fts_child = NULL;
	return walk_to(f, first, dir);
}

FTSENT *tree_fts_read(FTS *f)
{
	FTSENT *e = f->fts_cur, *parent;
	int instruction;

	if (!e)
		return NULL;
	instruction = e->fts_instr;
	e->fts_instr = FTS_NOINSTR;
	if (instruction == FTS_AGAIN) {
		e->fts_info = entry_look(e, f->fts_options & FTS_LOGICAL);
		return e;
	}
	if (instruction == FTS_FOLLOW && (e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE)) {
		e->fts_info = entry_look(e, true);
		return e;
	}
	if (e->fts_info == FTS_D && instruction != FTS_SKIP &&
	    !(f->fts_options & FTS_XDEV && e->fts_dev != f->fts_dev))
		return walk_down(f, e);
	if (e->fts_info == FTS_D) {
		children_drop(f);
		e->fts_info = FTS_DP;
		return e;
	}
	parent = e->fts_parent;
	return walk_to(f, entry_drop(e), parent);
}

FTSENT *tree_fts_children(FTS *f, int instruction)
{
	FTSENT *e = f->fts_cur;

	if (instruction && instruction != FTS_NAMEONLY) {
		errno = EINVAL;
		return NULL;
	}
	errno = 0;
	if (e && e->fts_info == FTS_INIT)
		return e->fts_link;
	if (!e || e->fts_info != FTS_D)
		return NULL;
	children_drop(f);
	f->fts_options |= instruction;
	if (children_read(f, e))
		errno = 0;
	return f->fts_child;
}

FTS *tree_fts_open(char *const *paths, int options, fts_order order)
{
	FTS *f = calloc(1, sizeof(*f));
	FTSENT *top = f ? entry_make(NULL, "") : NULL;
	FTSENT *first = top ? entry_make(top, "") : NULL;
	FTSENT **end;
	size_t n = 0;

	if (!first) {
		list_drop(top);
		free(f);
		return NULL;
	}
	f->fts_options = options | WALK_IS_OURS;
	f->fts_compar = (int (*)(const void *, const void *))order;
	f->fts_cur = first;
	first->fts_info = FTS_INIT;
	end = &first->fts_link;
	for (; paths[n]; n++) {
		if (!paths[n][0])
			errno = ENOENT;
		*end = paths[n][0] ? entry_make(top, paths[n]) : NULL;
		if (!*end) {
			(void)tree_fts_close(f);
			return NULL;
		}
		(*end)->fts_info = entry_look(*end, options & (FTS_LOGICAL | FTS_COMFOLLOW));
		end = &(*end)->fts_link;
	}
	list_sort(f, &first->fts_link, n);
	return f;
}

/* Keeps errno. */
int tree_fts_close(FTS *f)
{
	int saved_errno = errno;
	FTSENT *e = f->fts_cur;

	children_drop(f);
	while (e) {
		FTSENT *parent = e->fts_parent;
		FTSENT *next = entry_drop(e);

		e = next ? next : parent;
	}
	free(f);
	errno = saved_errno;
	return 0;
}

/* ---- the program's calls ---- */

/* The C library says what is wrong with options. */
static bool is_ours(char *const *paths, int options)
{
	bool keep_last = !(options & (FTS_LOGICAL | FTS_COMFOLLOW));

	for (; !(options & ~FTS_OPTIONMASK) && *paths; paths++) {
		struct tree_path t;

		(void)tree_map(AT_FDCWD, *paths, keep_last, &t);
		if (t.below || t.merged)
			return true;
	}
	return false;
}

/* The functions of fts(3), under their names for each of the two names of its structures. */
#define FUNCTIONS(open, read, children, close, walk, entry)                                       \
	exported walk open(char *const *paths, int options,                                       \
			   int (*order)(const entry *, const entry *))                            \
	{                                                                                         \
		return is_ours(paths, options)                                                    \
			       ? (void *)tree_fts_open(paths, options, (fts_order)order)          \
			       : real(open)(paths, options, order);                               \
	}                                                                                         \
	exported entry read(walk f)                                                               \
	{                                                                                         \
		return f->fts_options & WALK_IS_OURS ? (void *)tree_fts_read((FTS *)f)            \
						     : real(read)(f);                             \
	}                                                                                         \
	exported entry children(walk f, int instruction)                                          \
	{                                                                                         \
		return f->fts_options & WALK_IS_OURS                                              \
			       ? (void *)tree_fts_children((FTS *)f, instruction)                 \
			       : real(children)(f, instruction);                                  \
	}                                                                                         \
	exported int close(walk f)                                                                \
	{                                                                                         \
		return f->fts_options & WALK_IS_OURS ? tree_fts_close((FTS *)f) : real(close)(f); \
	}

FUNCTIONS(fts_open, fts_read, fts_children, fts_close, FTS *, FTSENT *)
FUNCTIONS(fts64_open, fts64_read, fts64_children, fts64_close, FTS64 *, FTSENT64 *)
