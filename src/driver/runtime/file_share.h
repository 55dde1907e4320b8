/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that the program itself has mapped shared and registered: they are laid open as they
 * are, and no page moves.  share.c calls all of these under its lock.
 */
#pragma once

#include "driver/runtime/share_kind.h"
#include "driver/runtime/shared_file.h"

/* Lays the file open, for that range at least, unless it is.  NULL: it cannot be. */
struct share *file_share_begin(struct expose *e, const struct shared_range *r,
			       uint64_t bytes) must_check;
struct segment_ref file_share_segment(struct share *s);
/* It has no users any more. */
void file_share_end(struct share *s);
