/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How `softhca env` is undone.  It exports SOFTHCA_BEFORE: the variables that it may set and that
 * were set already, as lines NAME=VALUE.  `softhca env --unset` restores them and unsets the
 * others.  A second `softhca env` keeps the first one's record, so that both are undone at once.
 */
#pragma once

#include "tool/tool.h"

/* Prints for any POSIX shell: export NAME='VALUE' */
void undo_export(const char *name, const char *value);
/* Keeps the environment as it is, before this process changes it. */
void undo_remember(void);
/* Exports what was kept, unless the environment has it already. */
void undo_record(void);
/* Prints what undoes softhca env; returns an exit status. */
int undo_print(const struct session *s);
