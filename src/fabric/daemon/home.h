/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's run-time directory, which others may remove under it: the end of a session, cleaners
 * of /tmp, a user.  A daemon that nobody finds any more would stay for ever.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

/* Watches the directory.  A descriptor that is readable when something in it has been removed, or
 * negative errno. */
int home_watch(const char *dir) must_check;
/* Takes what the descriptor has to say.  Has another directory, or none, taken our place? */
bool home_has_gone(int watch, const char *dir, int lock) must_check;
