/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks of the program's view: see fts.c.  They work as fts(3). */
#pragma once

#include <fts.h>
#include <stdbool.h>

#include "base/compiler.h"

typedef int (*fts_order)(const FTSENT **, const FTSENT **);

FTS *tree_fts_open(char *const *paths, int options, fts_order order) must_check;
FTSENT *tree_fts_read(FTS *f);
FTSENT *tree_fts_children(FTS *f, int instruction);
int tree_fts_close(FTS *f);
