// SPDX-License-Identifier: BSD-2-Clause
/* Writes JSON (RFC 8259) to a stream. */
#include <inttypes.h>

#include "tool/tool.h"

unsigned utf8_bytes(const unsigned char *s)
{
	unsigned n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] > 0xf4)
		return 0;
	for (unsigned i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Too long a form, a surrogate, or beyond the last character. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Names of programs may be any bytes; what is no character becomes U+FFFD. */
static void put_string(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;
		unsigned n = utf8_bytes((const unsigned char *)s);

		if (!n) {
			fputs("\\ufffd", out);
		} else if (n > 1) {
			fwrite(s, 1, n, out);
			s += n - 1;
		} else if (ch == '"' || ch == '\\')
			fprintf(out, "\\%c", ch);
		else if (ch < 0x20)
			fprintf(out, "\\u%04x", ch);
		else
			fputc(ch, out);
	}
	fputc('"', out);
}

static void put_key(struct json *j, const char *key)
{
	if (!j->first)
		fputs(", ", j->out);
	j->first = false;
	if (key) {
		put_string(j->out, key);
		fputs(": ", j->out);
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	fputc(bracket, j->out);
	j->first = true;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->first = false;
}

void json_string(struct json *j, const char *key, const char *value)
{
	put_key(j, key);
	put_string(j->out, value);
}

void json_raw(struct json *j, const char *key, const char *value)
{
	put_key(j, key);
	fputs(value, j->out);
}

void json_line(struct json *j)
{
	fputs(j->first ? "\n" : ",\n", j->out);
	j->first = true;
}

void json_number(struct json *j, const char *key, uint64_t value)
{
	put_key(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	put_key(j, key);
	fputs(value ? "true" : "false", j->out);
}
