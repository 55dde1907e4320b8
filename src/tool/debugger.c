// SPDX-License-Identifier: BSD-2-Clause
/*
 * gdb as the program of softhca run.  A file beside the preload library tells gdb which faults
 * softhca's own handler answers, and gdb loads it with the library if it may: of a directory that
 * it does not know, gdb only says that it is not safe.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tool/tool.h"

static bool is_gdb(const char *path)
{
	return !strcmp(text_file_name(path), "gdb");
}

/* The library's name has no blanks (preload_value). */
static char *safe_path_command(const char *preload)
{
	int n = (int)(strrchr(preload, '/') - preload);
	char *text;

	return asprintf(&text, "add-auto-load-safe-path %.*s", n, preload) < 0 ? NULL : text;
}

char **debugger_arguments(const struct session *s, const char *path, int argc, char **argv)
{
	static char gdb[] = "gdb", early[] = "-iex", args[] = "--args";
	char **all, **end, *safe;

	if (!is_gdb(path))
		return argv;
	all = calloc((size_t)argc + 5, sizeof(*all));
	safe = safe_path_command(s->preload);
	if (!all || !safe) {
		free(all);
		free(safe);
		return NULL;
	}
	end = all;
	*end++ = s->gdb ? gdb : *argv++;
	*end++ = early;
	*end++ = safe;
	if (s->gdb)
		*end++ = args;
	while (*argv)
		*end++ = *argv++;
	return all;
}
