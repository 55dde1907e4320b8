// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dpacc/report.h"

const char *report_name = "dpacc";
static int complaints;

static void report_line(const char *kind, const char *format, va_list args)
{
	fprintf(stderr, "%s: %s: ", report_name, kind);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report_line("error", format, args);
	va_end(args);
	exit(1);
}

void report_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report_line("warning", format, args);
	va_end(args);
}

void report_at(const char *file, int line, const char *format, ...)
{
	va_list args;

	if (line > 0)
		fprintf(stderr, "%s:%d: error: ", file, line);
	else
		fprintf(stderr, "%s: error: ", file);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	complaints++;
}

void report_check(void)
{
	if (complaints)
		exit(1);
}
