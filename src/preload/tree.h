/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which paths are ours, and what stands for them: the device tree of a host is a directory of plain
 * files, $SOFTHCA_DIR/hosts/$SOFTHCA_HOST, which lies over the machine's root directory
 * (docs/design/files.md).
 */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/compiler.h"

struct tree_path {
	/* The path below the host's directory ("sys/class/..."), or NULL: not in the tree. */
	const char *below;
	bool missing; /* the tree should have it, and has not */
	bool merged;  /* a directory that the machine has, too, and the path is the machine's */
	bool looked;  /* the kernel's description of the file is at hand, which is no link */
	int error;    /* what the walk broke a limit of openat2(2) with, or 0 */
	struct stat st;
	char text[PATH_MAX];
};

/* Off unless the environment names a fabric; then we change no call.  Reads the environment once,
 * because programs clear theirs. */
bool tree_active(void);
/* Says once why there are no devices, when the program seems to look for some in vain. */
void tree_missed(void);

/*
 * Returns the path by which the real call finds what the program means: path itself, or an absolute
 * path in t->text.  dirfd is as in openat(2); keep_last: a link at the end of the path is meant
 * itself.  Starts the fabric's daemon if the tree is not there.  Keeps errno.
 */
const char *tree_map(int dirfd, const char *path, bool keep_last, struct tree_path *t);
/* The same within the limits RESOLVE_* of openat2(2).  If the path breaks one, t->error says so. */
const char *tree_map_within(int dirfd, const char *path, bool keep_last, uint64_t limits,
			    struct tree_path *t);
/* The process has another current directory. */
void tree_directory_changed(void);

/* Tells whether a file that the tree has not got has a directory there.  Keeps errno. */
bool tree_parent_is_there(struct tree_path *t) must_check;

/* Tells whether the daemon may know a newer text of this attribute than the file has.  Then name
 * gets the path by which the daemon knows it. */
bool tree_live(const char *below, char *name, size_t size) must_check;
/* Takes the host's directory off a path that the kernel gave; false: it was not there. */
bool tree_unmap(char *path);
/* As tree_map for the file behind a descriptor; false: it is none of the tree's files.  Keeps errno. */
bool tree_map_descriptor(int fd, struct tree_path *t) must_check;

/*
 * Tells whether a descriptor is a device's, or the tree's to read an attribute or a directory by.  The
 * file of an O_PATH descriptor may have another look.
 */
bool tree_has_descriptor(int fd) must_check;

/* Gives what stat says of a file of the tree the look of the device or the attribute. */
void tree_describe(const struct tree_path *t, struct stat *st);
/* The same for a descriptor. */
void tree_describe_descriptor(int fd, struct stat *st);

/* Work as openat(2), fstatat(2), fstat(2) and chdir(2), for all of the above. */
int tree_open(int dirfd, const char *path, int flags, mode_t mode);
int tree_stat(int dirfd, const char *path, struct stat *st, int flags);
int tree_fstat(int fd, struct stat *st);
int tree_chdir(const char *path);
/* Work as the functions of libc, for directories of the machine and the tree as well. */
DIR *tree_opendir(const char *path);
struct dirent *tree_readdir(DIR *dir);
int tree_closedir(DIR *dir);
/* Has this process ever opened a device file? */
bool tree_device_opened(void);
/* Are we that process, and not a child of vfork(2) that shares its memory until it executes?. */
bool tree_device_owner(void);
/* A child of fork(2) calls this, because it has its own memory. */
void tree_device_forked(void);

/* ---- the resolution of a path in the program's view: see resolve.c ---- */

/* A path that is the tree's contains the word, or begins with one of few names (tree.c). */
#define TREE_WORD "infiniband"

struct view {
	const char *root; /* the tree's directory */
	size_t root_len;
	void (*ensure)(void);	   /* the tree must be there now */
	const _Atomic(bool) *held; /* this process has asked for the tree, which was there */
};

/*
 * Returns the path by which the kernel finds what the program means: path itself, or an absolute
 * path in t->text.  The path must be readable.  Changes errno.
 */
const char *resolve(const struct view *view, int dirfd, const char *path, bool keep_last,
		    uint64_t limits, struct tree_path *t);
/* Takes the tree's directory off a path that the kernel gave; false: it was not there. */
bool resolve_unmap(const struct view *view, char *path);
/* Tells whether relative paths from this directory of the program's view may lead into the tree. */
bool resolve_in_view(const char *dir);
