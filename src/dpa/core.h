/* SPDX-License-Identifier: BSD-2-Clause */
/* A core file of a DPA process, for gdb beside the image: its memory, and its threads where they
 * were left. */
#pragma once

#include "base/compiler.h"

struct dpa_process;

/* Writes it to the start of that file; 0 or negative errno. */
int dpa_core_write(struct dpa_process *p, int fd) must_check;
