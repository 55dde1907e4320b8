// SPDX-License-Identifier: BSD-2-Clause
/* See toml.h. */
#include "tool/toml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 4096u

static const char bare[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

bool toml_error(const struct toml_reader *r, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s:%u: ", r->path, r->line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return false;
}

static char *blanks_skip(char *at)
{
	return at + strspn(at, " \t");
}

/* True if nothing but a comment follows. */
static bool line_ends(const struct toml_reader *r, char *at)
{
	at = blanks_skip(at);
	return !*at || *at == '#' ||
	       toml_error(r, "only a comment can follow here, not '%.20s'", at);
}

/* ---- values ---- */

/* Replaces the escape at *from by what it stands for. */
static bool escape_read(const struct toml_reader *r, const char **from, char **to)
{
	static const char names[] = "\"\\ntr", meant[] = "\"\\\n\t\r";
	const char *name = **from ? strchr(names, **from) : NULL;

	if (!name)
		return toml_error(r, "of escapes in strings there are \\\", \\\\, \\n, \\t and \\r "
				     "alone");
	*(*to)++ = meant[name - names];
	++*from;
	return true;
}

/* Reads a string in place; *at is behind it then. */
static bool string_read(const struct toml_reader *r, char **at, struct toml_value *v)
{
	char quote = **at, *to = *at + 1;
	const char *from = to;

	if (from[0] == quote && from[1] == quote)
		return toml_error(r,
				  "strings of several lines are not read here: put it on one line");
	v->type = TOML_STRING;
	v->text = to;
	while (*from && *from != quote) {
		if (*from != '\\' || quote == '\'') {
			*to++ = *from++;
			continue;
		}
		from++;
		if (!escape_read(r, &from, &to))
			return false;
	}
	if (!*from)
		return toml_error(r, "the string has no end");
	*at += from + 1 - *at;
	*to = '\0';
	return true;
}

static const char digits[] = "0123456789";

/* The length of a decimal number of TOML: it has no zeros in front, and digits on both sides of a point.
 * 0: there is none. */
static size_t number_length(const char *at)
{
	size_t n = *at == '+' || *at == '-', whole = strspn(at + n, digits), part;

	if (!whole || (whole > 1 && at[n] == '0'))
		return 0;
	n += whole;
	if (at[n] == '.') {
		part = strspn(at + n + 1, digits);
		if (!part)
			return 0;
		n += 1 + part;
	}
	if (at[n] == 'e' || at[n] == 'E') {
		size_t sign = at[n + 1] == '+' || at[n + 1] == '-';

		part = strspn(at + n + 1 + sign, digits);
		if (!part)
			return 0;
		n += 1 + sign + part;
	}
	return n;
}

/* Reads a number or a boolean. */
static bool word_read(const struct toml_reader *r, char **at, struct toml_value *v)
{
	size_t word = strcspn(*at, " \t,]#"), n = number_length(*at);

	v->type = n ? TOML_NUMBER : TOML_BOOLEAN;
	if (n)
		v->number = strtod(*at, NULL);
	else if (word == strlen("true") && !strncmp(*at, "true", word))
		v->number = n = word;
	else if (word == strlen("false") && !strncmp(*at, "false", word))
		n = word;
	if (!n || n != word)
		return toml_error(r, "a value is a \"string\", a decimal number, true, false or an "
				     "[array] of these on one line");
	*at += n;
	return true;
}

static bool scalar_read(const struct toml_reader *r, char **at, struct toml_value *v)
{
	return **at == '"' || **at == '\'' ? string_read(r, at, v) : word_read(r, at, v);
}

static bool array_read(const struct toml_reader *r, char **at, struct toml_value *v)
{
	struct toml_value element;

	*at = blanks_skip(*at + 1);
	while (**at != ']') {
		if (!**at || **at == '#')
			return toml_error(r, "the array does not end on its line");
		if (!scalar_read(r, at, &element))
			return false;
		*at = blanks_skip(*at);
		if (**at == ',')
			*at = blanks_skip(*at + 1);
		else if (**at != ']')
			return toml_error(r, "a comma or ] has to follow in the array");
	}
	++*at;
	v->type = TOML_ARRAY;
	return true;
}

/* ---- lines ---- */

static bool pair_read(struct toml_reader *r, char *key)
{
	size_t n = strspn(key, bare);
	char *at = blanks_skip(key + n);
	struct toml_value v = {0};
	bool good;

	if (!n || *at != '=')
		return toml_error(r, "a line is a comment, a [table], a [[table]] or key = value");
	at = blanks_skip(at + 1);
	/* Values are read in place, behind the key. */
	good = *at == '[' ? array_read(r, &at, &v) : scalar_read(r, &at, &v);
	if (!good || !line_ends(r, at))
		return false;
	key[n] = '\0';
	return r->value(r, key, &v);
}

static bool table_read(struct toml_reader *r, char *at)
{
	bool array = at[1] == '[';
	char *name = blanks_skip(at + 1 + array);
	size_t n = strspn(name, bare);
	char *end = blanks_skip(name + n);

	if (!n || end[0] != ']' || (array && end[1] != ']'))
		return toml_error(r, "a table is [name] or [[name]]");
	if (!line_ends(r, end + 1 + array))
		return false;
	name[n] = '\0';
	return r->table(r, name, array);
}

static bool line_read(struct toml_reader *r, char *line)
{
	char *at = blanks_skip(line);

	if (!*at || *at == '#')
		return true;
	return *at == '[' ? table_read(r, at) : pair_read(r, at);
}

bool toml_read(struct toml_reader *r)
{
	char line[LINE_BYTES];
	bool good = true;
	FILE *f = fopen(r->path, "re");

	if (!f) {
		fprintf(stderr, "%s: %s\n", r->path, strerror(errno));
		return false;
	}
	for (r->line = 1; good && fgets(line, sizeof(line), f); r->line++) {
		size_t n = strcspn(line, "\r\n");

		if (!line[n] && !feof(f))
			good = toml_error(
				r, "the line is longer than %u characters or has a zero byte",
				LINE_BYTES - 2);
		line[n] = '\0';
		good = good && line_read(r, line);
	}
	if (good && ferror(f)) {
		fprintf(stderr, "%s: %s\n", r->path, strerror(errno ? errno : EIO));
		good = false;
	}
	fclose(f);
	return good;
}
