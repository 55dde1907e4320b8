// SPDX-License-Identifier: BSD-2-Clause
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

static const char *const level_name[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

enum log_level log_level = LOG_LEVEL_WARN;
/* A copy, because the program may change its environment while we write a line. */
static char log_file[4096];
static bool log_ready;

/*
 * Opens the file for each line.  The program could close a kept descriptor, and would then find our
 * lines in a file of its own that gets the same number.
 */
static int log_target(void)
{
	const char *path = log_ready ? log_file : getenv("SOFTHCA_LOG_FILE");
	long fd;

	if (!path || !path[0])
		return STDERR_FILENO;
	fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? STDERR_FILENO : (int)fd;
}

static void log_level_read(const char *want)
{
	for (size_t i = 0; i < array_size(level_name); i++) {
		if (strcmp(want, level_name[i]) != 0)
			continue;
		log_level = (enum log_level)i;
		return;
	}
	log_line(LOG_LEVEL_WARN, "SOFTHCA_LOG is error, warn, info or debug, not: %s", want);
}

/* Falls back to standard error: a line in the wrong place is better than no line. */
static void log_file_check(void)
{
	int fd = log_target();

	if (fd != STDERR_FILENO) {
		syscall(SYS_close, fd);
		return;
	}
	log_line(LOG_LEVEL_WARN, "SOFTHCA_LOG_FILE: %s: %s; standard error has the log", log_file,
		 strerror(errno));
	log_file[0] = '\0';
}

void log_init(void)
{
	const char *want = getenv("SOFTHCA_LOG"), *file = getenv("SOFTHCA_LOG_FILE");

	if (log_ready)
		return;
	log_ready = true;
	if (file && !text_copy(log_file, sizeof(log_file), file)) {
		log_file[0] = '\0';
		log_line(LOG_LEVEL_WARN,
			 "SOFTHCA_LOG_FILE is too long; standard error has the log");
	}
	if (log_file[0])
		log_file_check();
	if (want)
		log_level_read(want);
}

static bool write_whole(int fd, const char *text, size_t n)
{
	long ret;

	do {
		ret = syscall(SYS_write, fd, text, n);
	} while (ret < 0 && errno == EINTR);
	return ret >= 0;
}

void log_write(const char *text, size_t n)
{
	int fd = log_target();

	if (!write_whole(fd, text, n) && fd != STDERR_FILENO)
		(void)write_whole(STDERR_FILENO, text, n);
	if (fd != STDERR_FILENO)
		syscall(SYS_close, fd);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[512];
	int saved_errno = errno;
	va_list ap;
	int n = snprintf(line, sizeof(line), "softhca[%d]: %s: ", (int)getpid(), level_name[level]);

	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';

	log_write(line, (size_t)n);
	errno = saved_errno;
}
