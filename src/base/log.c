// SPDX-License-Identifier: BSD-2-Clause
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_name[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

enum log_level log_level = LOG_LEVEL_WARN;

void log_init(void)
{
	const char *want = getenv("SOFTHCA_LOG");

	if (!want)
		return;
	for (size_t i = 0; i < array_size(level_name); i++)
		if (!strcmp(want, level_name[i]))
			log_level = (enum log_level)i;
}

/* The file is opened per line: lines are rare, and a kept fd could be closed by the program. */
static int log_target(void)
{
	const char *path = getenv("SOFTHCA_LOG_FILE");
	int fd;

	if (!path)
		return STDERR_FILENO;
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? STDERR_FILENO : fd;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[512];
	int saved_errno = errno;
	va_list ap;
	int n = snprintf(line, sizeof(line), "softhca[%d]: %s: ", (int)getpid(), level_name[level]);
	int fd;

	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';

	fd = log_target();
	if (write(fd, line, (size_t)n) < 0 && fd != STDERR_FILENO)
		(void)!write(STDERR_FILENO, line, (size_t)n);
	if (fd != STDERR_FILENO)
		close(fd);
	errno = saved_errno;
}
