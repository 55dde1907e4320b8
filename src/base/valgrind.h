/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether valgrind runs the program. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Valgrind puts a library of its own in front of a program's others. */
static inline bool runs_in_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "/vgpreload_");
}
