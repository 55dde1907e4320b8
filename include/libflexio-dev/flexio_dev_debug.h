/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of old programs to the console of a simulator.  Here there is none: the text is dropped.
 * From generation 25.1 on also measurements (flexio_dev_perf.h).
 */
#ifndef _FLEXIO_DEV_DEBUG_H_
#define _FLEXIO_DEV_DEBUG_H_

#include <stdint.h>

#include <libflexio-dev/flexio_dev_perf.h>

/** print_sim_str() - print @len bytes of @str; 0: up to the terminator. */
static inline void print_sim_str(const char *str, int len)
{
	(void)str;
	(void)len;
}

/** print_sim_hex() - print @num in hexadecimal, in at least @len digits. */
static inline void print_sim_hex(uint64_t num, int len)
{
	(void)num;
	(void)len;
}

/** print_sim_int() - print @num in decimal, in at least @len digits. */
static inline void print_sim_int(int num, int len)
{
	(void)num;
	(void)len;
}

/** print_sim_putc() - print the character @c. */
static inline void print_sim_putc(int c)
{
	(void)c;
}

/** sim_trace() - print @text, the value @val and where that is: @func and @line. */
static inline void sim_trace(const char *text, uint64_t val, const char *func, int line)
{
	(void)text;
	(void)val;
	(void)func;
	(void)line;
}

/*
 * sim_trace() of this place.  The first takes a text, and from generation 25.1 on a value behind it;
 * the second a text and a value, or from 25.1 on a value, which is its own text.
 */
#define SIM_TRACE(...)	  __SIM_TRACE(__VA_ARGS__, 0, 0)
#define SIM_TRACEVAL(...) __SIM_PICK(__VA_ARGS__, __SIM_TRACE_TWO, __SIM_TRACE_ONE, 0)(__VA_ARGS__)

#define __SIM_TRACE(text, val, ...)  sim_trace(text, (uint64_t)(val), __func__, __LINE__)
#define __SIM_TRACE_TWO(text, val)   sim_trace(text, (uint64_t)(val), __func__, __LINE__)
#define __SIM_TRACE_ONE(val)	     sim_trace(#val, (uint64_t)(val), __func__, __LINE__)
#define __SIM_PICK(a, b, which, ...) which

#endif
