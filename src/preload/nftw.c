// SPDX-License-Identifier: BSD-2-Clause
/*
 * ftw(3) and nftw(3) walk inside the C library, which knows nothing of the tree.  So a walk that
 * begins in the program's view is one of fts.c, of which the program's function hears what nftw(3)
 * tells.
 */
#include "preload/libc.h"

#include "preload/fts.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "preload/tree.h"

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
static bool is_ours(const char *path, int flags)
{
	struct tree_path t;

	(void)tree_map(AT_FDCWD, path, flags & FTW_PHYS, &t);
	return t.below || t.merged;
}

static int tree_nftw(const char *path, nftw_function function, int descriptors, int flags)
{
	struct tree_walk w = {.visit = function, .flags = flags};

	return is_ours(path, flags) ? walk_run(&w, path)
				    : real(nftw)(path, function, descriptors, flags);
}

static int tree_ftw(const char *path, ftw_function function, int descriptors)
{
	struct tree_walk w = {.visit_plain = function};

	return is_ours(path, 0) ? walk_run(&w, path) : real(ftw)(path, function, descriptors);
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
