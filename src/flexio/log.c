// SPDX-License-Identifier: BSD-2-Clause
/* The log of the library: lines on standard error. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "flexio/internal.h"

static _Atomic(int) log_level = FLEXIO_LOG_LVL_ERR;

static void log_write(enum flexio_log_lvl level, const char *function, const char *fmt, va_list ap)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	char line[512];

	if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed))
		return;
	vsnprintf(line, sizeof(line), fmt, ap);
	/* One call prints the line, so that lines of several threads do not mix. */
	fprintf(stderr, "flexio: %s: %s%s%s\n", names[level], function ? function : "",
		function ? ": " : "", line);
}

void flx_log(enum flexio_log_lvl level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(level, NULL, fmt, ap);
	va_end(ap);
}

flexio_status flx_fail(const char *function, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(FLEXIO_LOG_LVL_ERR, function, fmt, ap);
	va_end(ap);
	return FLEXIO_STATUS_FAILED;
}

enum flexio_log_lvl flexio_log_lvl_set(enum flexio_log_lvl lvl)
{
	if ((int)lvl < FLEXIO_LOG_LVL_ERR || lvl > FLEXIO_LOG_LVL_DBG) {
		flx_fail(__func__, "lvl: %d is no level", (int)lvl);
		return (enum flexio_log_lvl)atomic_load(&log_level);
	}
	return (enum flexio_log_lvl)atomic_exchange(&log_level, (int)lvl);
}
