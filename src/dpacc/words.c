// SPDX-License-Identifier: BSD-2-Clause
/* Lists of words and texts, and what the programs say when they cannot go on. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpacc/words.h"

/* ---- messages ---- */

const char *report_name = "dpacc";
static int complaints;

/* Prints one line with one call, because other compilers may write to the same place. */
static void report_line(const char *place, const char *kind, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		abort();
	fprintf(stderr, "%s: %s: %s\n", place, kind, text);
	free(text);
}

void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report_line(report_name, "error", format, args);
	va_end(args);
	exit(1);
}

void report_at(const char *file, int line, const char *format, ...)
{
	char *place;
	va_list args;

	if ((line > 0 ? asprintf(&place, "%s:%d", file, line) : asprintf(&place, "%s", file)) < 0)
		abort();
	va_start(args, format);
	report_line(place, "error", format, args);
	va_end(args);
	free(place);
	complaints++;
}

void report_check(void)
{
	if (complaints)
		exit(1);
}

/* ---- words ---- */

static void words_take(struct words *list, char *word)
{
	list->words = realloc(list->words, (list->count + 2) * sizeof(*list->words));
	if (!list->words)
		give_up("out of memory");
	list->words[list->count++] = word;
	list->words[list->count] = NULL;
}

void words_add(struct words *list, const char *word)
{
	words_take(list, text_of("%s", word));
}

static char *text_format(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		give_up("out of memory");
	return text;
}

void words_addf(struct words *list, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	words_take(list, text_format(format, args));
	va_end(args);
}

void words_add_all(struct words *list, const struct words *more)
{
	for (size_t i = 0; i < more->count; i++)
		words_add(list, more->words[i]);
}

/* Options for another program stay together with their commas. */
static bool piece_passes_on(const char *text)
{
	return text_begins(text, "-Wl,") || text_begins(text, "-Wa,") || text_begins(text, "-Wp,");
}

void words_split(struct words *list, const char *text)
{
	static const char between[] = ", \t\n";

	for (text += strspn(text, between); *text; text += strspn(text, between)) {
		size_t length = strcspn(text, piece_passes_on(text) ? between + 1 : between);

		words_addf(list, "%.*s", (int)length, text);
		text += length;
	}
}

/* Copies one word of a text without its quotes, and returns where the word ends. */
static const char *word_unquote(const char *text, char *word)
{
	char quote = 0;

	for (; *text && (quote || !isspace((unsigned char)*text)); text++) {
		if (*text == quote) {
			quote = 0;
		} else if (!quote && (*text == '"' || *text == '\'')) {
			quote = *text;
		} else {
			if (*text == '\\' && quote != '\'' && text[1])
				text++;
			*word++ = *text;
		}
	}
	*word = 0;
	return text;
}

void words_parse(struct words *list, const char *text)
{
	char *word = text_of("%s", text);

	for (;;) {
		while (isspace((unsigned char)*text))
			text++;
		if (!*text)
			break;
		text = word_unquote(text, word);
		words_add(list, word);
	}
	free(word);
}

bool words_have(const struct words *list, const char *word)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->words[i], word))
			return true;
	return false;
}

char *text_of(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = text_format(format, args);
	va_end(args);
	return text;
}

bool text_begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

bool text_ends(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

/* Texts and lists live as long as the program, which is short, and a check for leaks would find
 * nothing else. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return 1;
}
