/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts softhcad from inside any program, without the program noticing: no SIGCHLD, no child for
 * its wait(), no descriptor kept open.  The daemon inherits none of the program's environment
 * hooks.
 */
#pragma once

#include "base/compiler.h"

/* Returns 0 when a daemon listens in dir (this one or a quicker one), else negative errno. */
int fabric_start(const char *daemon, const char *dir) must_check;
