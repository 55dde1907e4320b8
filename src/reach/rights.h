/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says whether another process may do all that we may.  All processes of a fabric began as one
 * user's, but one may have given rights up since.  A program that has taken that one over would use
 * our rights: it names a file that it may not write itself, or runs a program of another user under
 * the process number that we write to.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"

/* True if the process could trace us, as far as users, groups, capabilities and their namespace
 * say; then it gains nothing by us.  Opens files; false if we cannot read them. */
bool rights_cover_ours(pid_t pid) must_check;
