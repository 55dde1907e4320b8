/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device tree of a host as files: $SOFTHCA_DIR/hosts/HOST has directories, symbolic links and
 * attributes in the shape of /sys and /dev (fabric/daemon/tree.c).  What lays it over the machine's
 * root directory, the preload library or a mount namespace, agrees here on which names are the
 * tree's and on what its files look like (docs/design/files.md).
 *
 * A path "below" is one below the tree's root, without a slash in front.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/compiler.h"

/* The part of an absolute path behind a directory that is the tree's only ("" for the directory
 * itself), or NULL: it is in none.  The machine's files of these names are not looked at. */
const char *device_tree_own(const char *path);
/* Tells whether the tree's directory of this absolute path repeats each of the machine's entries. */
bool device_tree_is_complete(const char *path) must_check;
/* The part of 'below' that names a device file ("uverbs0"), or NULL: it is none. */
const char *device_tree_node(const char *below);
/* Tells whether 'below' is the attribute that programs write. */
bool device_tree_is_written(const char *below) must_check;
/* Changes what stat says of a file of the tree at root to what it says of such a device file or
 * attribute of the kernel.  Keeps errno. */
void device_tree_describe(const char *root, const char *below, struct stat *st);

/* What the device tree and the files of emulated PCI functions agree on. */

/* One of the numbers that the kernel gives out as it goes. */
#define UIO_MAJOR 241u
