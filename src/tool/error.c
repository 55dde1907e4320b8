// SPDX-License-Identifier: BSD-2-Clause
/* How each command says that it cannot go on. */
#include <stdarg.h>

#include "tool/tool.h"

void tool_error(const char *command, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}
