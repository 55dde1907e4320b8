// SPDX-License-Identifier: BSD-2-Clause
/* Walks of directories that the C library makes inside: fts(3), nftw(3), glob(3). */
#include "preload/libc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/text.h"
#include "preload/tree.h"

typedef int (*fts_order)(const FTSENT **, const FTSENT **);

/* ---- fts ---- */

/*
 * fts(3) walks inside the C library, which knows nothing of the tree.  So a walk that begins in the
 * program's view is ours as a whole, and every other one is the C library's.  Ours asks for each file
 * by its path, as opendir and stat of the program would.  It never changes the current directory,
 * which fts(3) leaves open, so the path by which the program reaches a file is its path.
 */

static_assert(sizeof(FTS) == sizeof(FTS64) && sizeof(FTSENT) == sizeof(FTSENT64),
	      "one structure, two names");

/* In fts_options, of which the C library uses few bits: the walk is ours. */
#define WALK_IS_OURS 0x40000000

/* Behind the FTSENT are the rest of its name, and its path. */
struct walk_entry {
	struct stat look;
	FTSENT e;
};

/* Makes the entry of a name in a directory, or of a path with which the walk begins. */
static FTSENT *entry_make(FTSENT *parent, const char *name)
{
	size_t dir_len = parent ? parent->fts_pathlen : 0, name_len = strlen(name);
	bool slash = dir_len && parent->fts_path[dir_len - 1] != '/';
	size_t path_len = dir_len + slash + name_len;
	struct walk_entry *entry;
	char *text;

	if (path_len > USHRT_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	entry = calloc(1, sizeof(*entry) + name_len + path_len + 2);
	if (!entry)
		return NULL;
	text = (char *)entry + offsetof(struct walk_entry, e.fts_name);
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

	free(container_of(e, struct walk_entry, e));
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

static FTSENT *tree_fts_read(FTS *f)
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

static FTSENT *tree_fts_children(FTS *f, int instruction)
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

static int tree_fts_close(FTS *f);

static must_check FTS *tree_fts_open(char *const *paths, int options, fts_order order)
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
static int tree_fts_close(FTS *f)
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
static bool fts_is_ours(char *const *paths, int options)
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
		return fts_is_ours(paths, options)                                                \
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

/* ---- ftw and nftw ---- */

/*
 * ftw(3) and nftw(3) walk inside the C library, which knows nothing of the tree.  So a walk that
 * begins in the program's view is one of ours, of which the program's function hears what nftw(3)
 * tells.
 */

typedef int (*nftw_function)(const char *, const struct stat *, int, struct FTW *);
typedef int (*ftw_function)(const char *, const struct stat *, int);

struct tree_walk {
	FTS *fts;
	nftw_function visit;
	ftw_function visit_plain;
	int flags;
	int here;   /* FTW_CHDIR: the current directory of the program */
	void *seen; /* directories, if links are followed */
};

/* Of a directory the walk says nothing, and fts_number says so when the walk comes back. */
#define UNSEEN 1

/* ---- each directory once ---- */

struct directory {
	dev_t dev;
	ino_t ino;
};

static int directory_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct directory));
}

/* Tells whether the walk has come to this directory before; -1: no memory. */
static int seen_before(struct tree_walk *w, const FTSENT *e)
{
	struct directory *d = malloc(sizeof(*d));
	struct directory **found;

	if (!d)
		return -1;
	*d = (struct directory){e->fts_dev, e->fts_ino};
	found = tsearch(d, &w->seen, directory_compare);
	if (found && *found == d)
		return 0;
	free(d);
	return found ? 1 : -1;
}

/* ---- a visit ---- */

static int function_call(const struct tree_walk *w, const FTSENT *e, int type)
{
	struct FTW place = {.base = (int)(text_file_name(e->fts_path) - e->fts_path),
			    .level = e->fts_level};

	if (w->visit)
		return w->visit(e->fts_path, e->fts_statp, type, &place);
	return w->visit_plain(e->fts_path, e->fts_statp, type == FTW_SLN ? FTW_NS : type);
}

/* Calls it in the directory of the file; after a directory's files, in that one. */
static int function_call_there(const struct tree_walk *w, const FTSENT *e, int type)
{
	size_t n = (size_t)(text_file_name(e->fts_path) - e->fts_path);
	char there[PATH_MAX];
	int ret;

	if (!(w->flags & FTW_CHDIR))
		return function_call(w, e, type);
	if (!text_copy(there, sizeof(there), e->fts_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (type != FTW_DP)
		there[n] = '\0';
	if (there[0] && tree_chdir(there))
		return -1;
	ret = function_call(w, e, type);
	return fchdir(w->here) ? -1 : ret;
}

/* What the program's function answers may be about the rest of the walk. */
static int entry_report(const struct tree_walk *w, FTSENT *e, int type)
{
	int answer = function_call_there(w, e, type);

	if (!(w->flags & FTW_ACTIONRETVAL) ||
	    (answer != FTW_SKIP_SUBTREE && answer != FTW_SKIP_SIBLINGS))
		return answer;
	if (e->fts_info == FTS_D) {
		e->fts_number = UNSEEN;
		e->fts_instr = FTS_SKIP;
	}
	for (e = e->fts_link; answer == FTW_SKIP_SIBLINGS && e; e = e->fts_link)
		e->fts_instr = FTS_SKIP;
	return 0;
}

static int directory_visit(struct tree_walk *w, FTSENT *e)
{
	int before = w->flags & FTW_PHYS ? 0 : seen_before(w, e);

	if (before < 0)
		return -1;
	if (before || (w->flags & FTW_MOUNT && e->fts_dev != w->fts->fts_dev)) {
		e->fts_number = UNSEEN;
		e->fts_instr = FTS_SKIP;
		return 0;
	}
	if (!tree_fts_children(w->fts, 0) && errno) {
		e->fts_number = UNSEEN;
		e->fts_instr = FTS_SKIP;
		return errno == EACCES ? entry_report(w, e, FTW_DNR) : -1;
	}
	return w->flags & FTW_DEPTH ? 0 : entry_report(w, e, FTW_D);
}

/* False, with errno set: the link cannot be followed for another reason. */
static bool leads_nowhere(const FTSENT *e)
{
	struct stat st;

	return tree_stat(AT_FDCWD, e->fts_path, &st, 0) && errno == ENOENT;
}

static int entry_visit(struct tree_walk *w, FTSENT *e)
{
	switch (e->fts_info) {
	case FTS_D:
		return directory_visit(w, e);
	case FTS_DP:
		return w->flags & FTW_DEPTH && e->fts_number != UNSEEN ? entry_report(w, e, FTW_DP)
								       : 0;
	case FTS_DC:
		return 0;
	case FTS_SL:
		return entry_report(w, e, FTW_SL);
	case FTS_SLNONE:
		return leads_nowhere(e) ? entry_report(w, e, FTW_SLN) : -1;
	case FTS_F:
	case FTS_DEFAULT:
		return entry_report(w, e, FTW_F);
	default:
		break;
	}
	errno = e->fts_errno;
	if (e->fts_info != FTS_NS || e->fts_level == FTS_ROOTLEVEL ||
	    (errno != EACCES && errno != ENOENT))
		return -1;
	return entry_report(w, e, FTW_NS);
}

/* ---- the walk ---- */

static int entries_visit(struct tree_walk *w)
{
	FTSENT *e;
	int ret = 0;

	while (!ret && (e = tree_fts_read(w->fts)))
		ret = entry_visit(w, e);
	return ret;
}

static int walk_run(struct tree_walk *w, const char *path)
{
	int options = w->flags & FTW_PHYS ? FTS_PHYSICAL : FTS_LOGICAL;
	int ret = -1, saved_errno;
	char start[PATH_MAX];
	char *paths[] = {start, NULL};
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	memcpy(start, path, n);
	start[n] = '\0';
	if (w->flags & FTW_CHDIR) {
		w->here = real(open)(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (w->here < 0)
			return -1;
	}
	w->fts = tree_fts_open(paths, options, NULL);
	if (w->fts)
		ret = entries_visit(w);
	saved_errno = errno;
	if (w->fts)
		(void)tree_fts_close(w->fts);
	if (w->flags & FTW_CHDIR)
		real(close)(w->here);
	tdestroy(w->seen, free);
	errno = saved_errno;
	return ret;
}

/* If it is, then the path is shorter than PATH_MAX. */
static bool ftw_is_ours(const char *path, int flags)
{
	struct tree_path t;

	(void)tree_map(AT_FDCWD, path, flags & FTW_PHYS, &t);
	return t.below || t.merged;
}

static int tree_nftw(const char *path, nftw_function function, int descriptors, int flags)
{
	struct tree_walk w = {.visit = function, .flags = flags};

	return ftw_is_ours(path, flags) ? walk_run(&w, path)
					: real(nftw)(path, function, descriptors, flags);
}

static int tree_ftw(const char *path, ftw_function function, int descriptors)
{
	struct tree_walk w = {.visit_plain = function};

	return ftw_is_ours(path, 0) ? walk_run(&w, path) : real(ftw)(path, function, descriptors);
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

/* ---- glob ---- */

/*
 * glob(3) reads directories inside libc, which does not call our opendir.  It lets its caller bring
 * the functions (GLOB_ALTDIRFUNC), so we give it the mapped ones.
 */

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
