// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dpacc/report.h"

const char *report_name = "dpacc";
static int complaints;

/* Prints one line with one call, because other compilers may write to the same place. */
static void report_line(const char *place, const char *kind, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		abort();
	fprintf(stderr, "%s: %s: %s\n", place, kind, text);
	free(text);
}

void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report_line(report_name, "error", format, args);
	va_end(args);
	exit(1);
}

void report_at(const char *file, int line, const char *format, ...)
{
	char *place;
	va_list args;

	if ((line > 0 ? asprintf(&place, "%s:%d", file, line) : asprintf(&place, "%s", file)) < 0)
		abort();
	va_start(args, format);
	report_line(place, "error", format, args);
	va_end(args);
	free(place);
	complaints++;
}

void report_check(void)
{
	if (complaints)
		exit(1);
}
