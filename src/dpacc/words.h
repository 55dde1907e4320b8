/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of words: the arguments of commands. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A list that grows.  words[count] is NULL, so that a list is an argument vector.  The words live
 * as long as the program: dpacc is one short run and frees none. */
struct words {
	char **words;
	size_t count;
};

/* Appends a copy of the word. */
void words_add(struct words *list, const char *word);
/* Appends what printf would print. */
void words_addf(struct words *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends all words of another list. */
void words_add_all(struct words *list, const struct words *more);
/* Appends the pieces of a text between commas and white space, without empty pieces.  -Wl, -Wa and
 * -Wp take all up to the next white space. */
void words_split(struct words *list, const char *text);
/* Appends the pieces of a text as a shell would read them: white space, quotes, backslash. */
void words_parse(struct words *list, const char *text);
bool words_have(const struct words *list, const char *word);

/* Returns what printf would print, as a new string. */
char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool text_begins(const char *text, const char *start);
bool text_ends(const char *text, const char *end);

/* ---- messages ---- */

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
