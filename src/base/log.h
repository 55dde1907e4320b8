/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines.  They go to standard error, or to the file named by SOFTHCA_LOG_FILE (appended),
 * prefixed "softhca[pid]: level: ".  The level is SOFTHCA_LOG = error, warn (default), info or
 * debug.  Any thread may log; no request that succeeds logs on the data path.
 */
#pragma once

#include "base/compiler.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

extern enum log_level log_level;

/* Reads the environment on the first call; each program or library calls it at its start. */
void log_init(void);
void log_line(enum log_level level, const char *fmt, ...) printf_like(2, 3);
/* Writes whole lines to where the log goes.  Safe in signal handlers; changes errno. */
void log_write(const char *text, size_t n);

#define log_at(level, ...)                              \
	do {                                            \
		if (unlikely((level) <= log_level))     \
			log_line((level), __VA_ARGS__); \
	} while (0)
#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)
