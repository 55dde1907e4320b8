// SPDX-License-Identifier: BSD-2-Clause
/* Writes JSON (RFC 8259) to a stream. */
#include <inttypes.h>

#include "tool/tool.h"

static void put_string(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;

		if (ch == '"' || ch == '\\')
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
