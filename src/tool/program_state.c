// SPDX-License-Identifier: BSD-2-Clause
/* See program_state.h. */
#include "tool/program_state.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

void text_printable(char *text, size_t size)
{
	for (size_t i = 0; i < size && text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	text[size - 1] = '\0';
}

static const char *state_of(char letter)
{
	switch (letter) {
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a debugger";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "running";
	}
}

/*
 * Reads /proc/PID/stat, "pid (command) state ...", which has neither the arguments nor the
 * program's memory: the program could hold up reads of those.  The command may have brackets, too.
 */
const char *program_state(int32_t pid, char *command, size_t size)
{
	char path[64], line[256];
	const char *begin, *end;
	size_t n;
	FILE *f;

	snprintf(command, size, "?");
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return "ended, or of another PID namespace";
	n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[n] = '\0';
	begin = strchr(line, '(');
	end = strrchr(line, ')');
	if (!begin || !end || end < begin || !end[1])
		return "unknown";
	snprintf(command, size, "%.*s", (int)(end - begin - 1), begin + 1);
	text_printable(command, size);
	return state_of(end[2]);
}
