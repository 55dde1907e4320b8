/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of the tree that a program which posix_spawn starts gets: see spawn.c. */
#pragma once

#include <spawn.h>
#include <stdbool.h>

/* Before and after a program starts with these actions, which may be NULL.  Returns 0 or the error
 * of the start; spawn_files_close follows in any case. */
int spawn_files_open(const posix_spawn_file_actions_t *actions, bool *held);
void spawn_files_close(const posix_spawn_file_actions_t *actions, bool held);
/* In the child of a fork. */
void spawn_fork_child(void);
