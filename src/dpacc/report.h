// SPDX-License-Identifier: BSD-2-Clause
/* What dpacc says when it cannot go on. */
#ifndef SOFTHCA_DPACC_REPORT_H
#define SOFTHCA_DPACC_REPORT_H

/* The tool's name in messages: dpacc or dpa-clang. */
extern const char *report_name;

/* Prints "dpacc: error: ..." and ends the program with status 1. */
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a complaint about a place in a source as compilers do, "FILE:LINE: error: ...".  The run
 * goes on, so that it can name all such places, and fails in report_check. */
void report_at(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Ends the program with status 1 if there was a complaint. */
void report_check(void);

#endif
