/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a core file of a DPA process, for gdb beside the image: its memory, and its threads where
 * they were left. */
#pragma once

#include "base/compiler.h"

struct dpa_process;

/* Writes the core to the start of that file; 0 or a negative errno. */
int dpa_core_write(struct dpa_process *p, int fd) must_check;
