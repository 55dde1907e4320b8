/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run-time directory of a fabric: <base>/softhca-<uid>/<fabric>, or, in a user namespace,
 * <base>/softhca-<uid>-<uid outside>/<fabric>, holding
 *   lock   flock'ed by the daemon for as long as it lives; who has the lock owns the directory
 *   sock   where the daemon listens
 *   hosts  the device trees
 *   log    what the daemon has to say, unless SOFTHCA_LOG_FILE names another file
 * A daemon that was killed leaves all this behind, and its clients remove all but the lock.  A
 * daemon that is told to leave while it has clients leaves the lock too.  While the lock exists,
 * programs may live that have numbers of a former daemon, so a new daemon begins with other
 * numbers.  The first of those programs that closes its devices removes the lock, and so does a
 * further daemon that leaves; the others are known by their lock on <base> (rundir_survive).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

#define RUNDIR_BYTES 96u /* because a socket address has 108 bytes for the path */

/* Gives the directory of the fabric of that name for this user. */
int rundir_path(const char *fabric, char *buf, size_t size) must_check;
/*
 * Makes the directory and its parent if they are missing.  -EPERM: it belongs, or is open, to
 * others.
 */
int rundir_make(const char *dir) must_check;
/*
 * Takes the lock.  Returns the descriptor, -EAGAIN while a daemon lives, -ENOENT if the directory
 * went.
 */
int rundir_lock(const char *dir, bool create) must_check;
/* Tells whether the lock is still the one that others find there. */
bool rundir_lock_stands(const char *dir, int lock) must_check;
/*
 * 0: directory and parent are there, and only this user and root can change what is in them; a
 * negative errno, -EPERM if others can.
 */
int rundir_check(const char *dir) must_check;
/* Tells whether the directory's parent has the name that rundir_path gives it for this user. */
bool rundir_is_named_ours(const char *dir);
/*
 * Tells whether somebody holds the lock.  False if directory or parent belong, or are open, to
 * others.
 */
bool rundir_is_locked(const char *dir);
/*
 * A program whose daemon has gone may live on with numbers that it gave out, even when directory and
 * lock are gone.  While it holds this descriptor, a new daemon of any fabric of the same place knows
 * that there is one.  Returns the descriptor or a negative errno.
 */
int rundir_survive(const char *dir) must_check;
/* Is there such a program?  It may also be somebody who locks /tmp, or XDG_RUNTIME_DIR. */
bool rundir_has_survivors(const char *dir);
/* Removes what rundir_make made, if it is empty. */
void rundir_abandon(const char *dir);
/* With the lock held: removes what a daemon makes, all but the lock. */
void rundir_clear(const char *dir);
/* Removes a directory and all below it. */
void rundir_remove_tree(const char *path);
/* With the lock held: removes everything including the lock, and empty parents. */
void rundir_remove(const char *dir);
