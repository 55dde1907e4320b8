// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inline assembly says to the compiler which registers it changes, and what kinds of operands it
 * takes.  The compiler of this machine knows neither RISC-V's registers nor its kinds, and refuses the
 * source before there is a module to rewrite.  So this looks for asm statements in the preprocessed
 * text, and writes
 *
 *  - "cc" in the place of a register of RISC-V: the translation makes a variable of it;
 *  - m in the place of A, an address in a register: both name a place in memory;
 *  - i in the place of I, J and K, which are constants of some range.
 */
#include "dpacc/constraints.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "dpacc/riscv.h"
#include "dpacc/words.h"

/* Goes past a string or character. */
static char *past_literal(char *at)
{
	char quote = *at++;

	while (*at && *at != quote && *at != '\n')
		at += at[0] == '\\' && at[1] ? 2 : 1;
	return *at == quote ? at + 1 : at;
}

/* Goes past white space, and lines that say which line of which file comes next. */
static char *past_space(char *at)
{
	while (isspace((unsigned char)*at) || *at == '#')
		at += *at == '#' ? strcspn(at, "\n") : 1;
	return at;
}

static char *past_word(char *at)
{
	while (isalnum((unsigned char)*at) || *at == '_' || *at == '$')
		at++;
	return at;
}

static bool word_is(const char *at, const char *end, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == (size_t)(end - at) &&
		    !strncmp(at, words[i], strlen(words[i])))
			return true;
	return false;
}

static bool clobber_rewrite(char *from, char *to)
{
	static const char known[4] = {'"', 'c', 'c', '"'};
	const char *name = text_of("%.*s", (int)(to - from - 2), from + 1);

	if (!riscv_is_register(name))
		return false;
	/* No register has a shorter name. */
	memset(from, ' ', (size_t)(to - from));
	memcpy(from, known, sizeof(known));
	return true;
}

static bool constraint_rewrite(char *from, const char *to)
{
	bool rewritten = false;

	for (; from < to; from++) {
		if (!strchr("AIJK", *from))
			continue;
		*from = *from == 'A' ? 'm' : 'i';
		rewritten = true;
	}
	return rewritten;
}

/* Reads what is between the brackets of a statement: text, results, arguments, clobbers, which are
 * parted by colons.  Returns where it ends. */
static char *statement_rewrite(char *at, bool *rewritten)
{
	int depth = 1, part = 0;

	while (*at && depth) {
		char *end;

		switch (*at) {
		case '"':
			end = past_literal(at);
			if (depth == 1 && (part == 1 || part == 2))
				*rewritten |= constraint_rewrite(at + 1, end - 1);
			if (depth == 1 && part == 3)
				*rewritten |= clobber_rewrite(at, end);
			at = end;
			continue;
		case '\'':
			at = past_literal(at);
			continue;
		case '#':
			at = past_space(at);
			continue;
		case '(':
			depth++;
			break;
		case ')':
			depth--;
			break;
		case ':':
			part += depth == 1;
			break;
		default:
			break;
		}
		at++;
	}
	return at;
}

static bool text_rewrite(char *at)
{
	static const char *const asms[] = {"asm", "__asm", "__asm__"};
	static const char *const qualifiers[] = {"volatile", "__volatile", "__volatile__", "inline",
						 "__inline", "__inline__", "goto"};
	bool rewritten = false;

	while (*at) {
		char *end;

		if (*at == '"' || *at == '\'') {
			at = past_literal(at);
			continue;
		}
		if (!isalnum((unsigned char)*at) && *at != '_') {
			at++;
			continue;
		}
		end = past_word(at);
		if (!word_is(at, end, asms, array_size(asms))) {
			at = end;
			continue;
		}
		at = past_space(end);
		while (end = past_word(at), word_is(at, end, qualifiers, array_size(qualifiers)))
			at = past_space(end);
		if (*at == '(')
			at = statement_rewrite(at + 1, &rewritten);
	}
	return rewritten;
}

static char *file_text(const char *path)
{
	FILE *file = fopen(path, "re");
	size_t room = 0;
	char *text = NULL;

	/* Up to a zero, which no source has. */
	if (!file || (getdelim(&text, &room, 0, file) < 0 && ferror(file)))
		give_up("%s: %s", path, strerror(errno));
	fclose(file);
	return text;
}

bool constraints_rewrite(const char *path)
{
	char *text = file_text(path);
	bool rewritten = text && text_rewrite(text), failed;
	FILE *file;

	if (rewritten) {
		file = fopen(path, "we");
		if (!file)
			give_up("%s: %s", path, strerror(errno));
		failed = fputs(text, file) < 0;
		if (fclose(file) || failed)
			give_up("%s: %s", path, strerror(errno));
	}
	free(text);
	return rewritten;
}
