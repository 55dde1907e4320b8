/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether another process may do all that we may.  All processes of a fabric began as one user's;
 * but one may have given rights up since, and who has taken it over would use ours: it names a file
 * that it may not write itself, or runs a program of another user under the number that we write
 * to.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"

/* Could it trace us, as far as users, groups, capabilities and their namespace say?  If so, it gains nothing by us.
 * Opens files; false if they cannot be read. */
bool rights_cover_ours(pid_t pid) must_check;
