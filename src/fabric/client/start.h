/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting softhcad from inside any program, without the program noticing: no SIGCHLD, no child for
 * its wait(), no descriptor kept open, none of its environment hooks inherited.
 */
#pragma once

#include "base/compiler.h"

/*
 * Returns 0 when a daemon listens in dir (this one or another that was quicker), else negative
 * errno.
 */
int fabric_start(const char *daemon, const char *dir) must_check;
