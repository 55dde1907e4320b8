/* SPDX-License-Identifier: BSD-2-Clause */
/* The resolution of a path in the program's view: see resolve.c. */
#pragma once

#include "preload/tree.h"

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
		    struct tree_path *t);
/* Takes the tree's directory off a path that the kernel gave; false: it was not there. */
bool resolve_unmap(const struct view *view, char *path);
/* Tells whether relative paths from this directory of the program's view may lead into the tree. */
bool resolve_in_view(const char *dir);
