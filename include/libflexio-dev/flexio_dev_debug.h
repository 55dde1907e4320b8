/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of old programs to the console of a simulator.  Here there is none: the text is dropped.
 */
#ifndef _FLEXIO_DEV_DEBUG_H_
#define _FLEXIO_DEV_DEBUG_H_

#include <stdint.h>

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

/** sim_trace() of this place, without and with a value. */
#define SIM_TRACE(text)		sim_trace(text, 0, __func__, __LINE__)
#define SIM_TRACEVAL(text, val) sim_trace(text, (uint64_t)(val), __func__, __LINE__)

#endif
