/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's run-time directory, which others may remove: the end of a session, cleaners of /tmp,
 * a user.  A daemon that nobody finds any more would stay for ever, so it watches for that.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

/* Watches the directory.  Returns a descriptor that is readable when something in it has been
 * removed, or a negative errno. */
int home_watch(const char *dir) must_check;
/* Reads the descriptor.  True: another directory, or none, has taken the place of ours. */
bool home_has_gone(int watch, const char *dir, int lock) must_check;
