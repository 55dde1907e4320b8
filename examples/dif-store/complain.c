/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and numbers; see complain.h. */
#include "complain.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void complain(const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	/* Lines of several threads do not mix. */
	flockfile(stderr);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	errno = saved; /* for %m */
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	funlockfile(stderr);
	va_end(args);
	errno = saved;
}

bool parse_number(const char *option, const char *text, uint64_t lowest, uint64_t highest,
		  uint64_t *out)
{
	char *end = NULL;

	errno = 0;
	unsigned long long value = strtoull(text, &end, 0);
	/* strtoull takes a sign and makes a large number of it. */
	if (!isdigit((unsigned char)text[0]) || *end || errno || value < lowest ||
	    value > highest) {
		complain("%s takes a number from %llu to %llu, not '%s'", option,
			 (unsigned long long)lowest, (unsigned long long)highest, text);
		return false;
	}
	*out = value;
	return true;
}
