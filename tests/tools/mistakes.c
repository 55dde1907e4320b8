// SPDX-License-Identifier: BSD-2-Clause
/*
 * mistakes CASE [stay]: makes one of the mistakes of docs/mistakes.md with plain libibverbs and prints
 * what the program is told of it (mistake.h); with "stay" it is there until it is killed.  Without a
 * case: lists them.  tests/tools/mistakes.py says what is expected.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mistake.h"

static const struct {
	const char *name;
	void (*make)(void);
} cases[] = {
#define MISTAKE_ROW(name) {#name, mistake_##name},
	MISTAKES(MISTAKE_ROW)};

static _Noreturn void stay(void)
{
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2) {
			puts(cases[i].name);
		} else if (!strcmp(argv[1], cases[i].name)) {
			cases[i].make();
			fflush(stdout);
			if (argc > 2)
				stay();
			return 0;
		}
	}
	return argc < 2 ? 0 : 2;
}
