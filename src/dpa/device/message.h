/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <stdarg.h>
#include <stdint.h>

/* Formats a message and gives it to a stream.  Returns the length as printf does, even if nobody
 * reads the message. */
int message_format(uint32_t stream, uint32_t level, const char *format, va_list ap);
