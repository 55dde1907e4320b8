/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens to peers the files that the program itself has mapped shared and registered.  share.c calls
 * all of these functions under its lock. */
#pragma once

#include "driver/runtime/share_kind.h"
#include "driver/runtime/shared_file.h"

/* Opens the file to peers, at least for that range, unless it is open already.  NULL: that is not
 * possible. */
struct share *file_share_begin(struct expose *e, const struct shared_range *r,
			       uint64_t bytes) must_check;
struct segment_ref file_share_segment(struct share *s);
/* The share has no users any more, so it ends. */
void file_share_end(struct share *s);
