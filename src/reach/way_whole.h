/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps aligned words of the target's memory whole that one copy would not keep whole, because our
 * side of them lies in two runs or at another alignment.  A program may send a header of 12 bytes
 * and its payload from elsewhere: an adapter puts both into one packet, but a copy from run to run
 * writes the word where they meet in two parts.
 */
#pragma once

#include "base/compiler.h"
#include "reach/way.h"

/* Does one of our runs end inside of an aligned word of a request? */
bool way_is_cut(const struct way_access *a) must_check;

/* Makes the access by accesses of the caller's kind ('by') that are not cut.  Of a write, words
 * where runs of ours meet go through memory of our own; of a read, all bytes do. */
enum way_verdict way_whole(struct way_access *a,
			   enum way_verdict (*by)(struct way_access *a)) must_check;
/* Does the same, but moves all bytes through memory of our own, which lies in its cache lines as
 * the target's does. */
enum way_verdict way_bounced(struct way_access *a,
			     enum way_verdict (*by)(struct way_access *a)) must_check;
