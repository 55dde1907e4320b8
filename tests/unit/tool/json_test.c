// SPDX-License-Identifier: BSD-2-Clause
/* JSON as the tool writes it: commas, brackets, and every byte that a string may hold. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tool/tool.h"

static char *text;
static size_t bytes;

static struct json json_begin(void)
{
	FILE *f = open_memstream(&text, &bytes);

	CHECK(f);
	return (struct json){.out = f, .first = true};
}

static void json_end(struct json *j, const char *expected)
{
	CHECK(!fclose(j->out));
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "written:  %s\nexpected: %s\n", text, expected);
	CHECK(!strcmp(text, expected));
	free(text);
}

static void test_nesting(void)
{
	struct json j = json_begin();

	json_open(&j, NULL, '{');
	json_string(&j, "name", "mlx5_0");
	json_number(&j, "most", UINT64_MAX);
	json_open(&j, "ports", '[');
	for (uint64_t i = 1; i < 3; i++) {
		json_open(&j, NULL, '{');
		json_number(&j, "number", i);
		json_bool(&j, "up", i == 1);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "none", '[');
	json_close(&j, ']');
	json_bool(&j, "last", true);
	json_close(&j, '}');
	json_end(&j, "{\"name\": \"mlx5_0\", \"most\": 18446744073709551615, "
		     "\"ports\": [{\"number\": 1, \"up\": true}, {\"number\": 2, \"up\": false}], "
		     "\"none\": [], \"last\": true}");
}

static void test_strings(void)
{
	struct json j = json_begin();

	json_open(&j, NULL, '[');
	json_string(&j, NULL, "");
	json_string(&j, NULL, "a \"quoted\" \\ word");
	json_string(&j, NULL, "\t\n\x01\x1f\x20\x7f");
	json_string(&j, NULL, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"); /* UTF-8 stays */
	/* What is none is replaced: a byte alone, a form too long, a surrogate, a number too large, an end
	 * that comes too early. */
	json_string(&j, NULL, "\xff");
	json_string(&j, NULL, "\xc0\xaf");
	json_string(&j, NULL, "\xed\xa0\x80");
	json_string(&j, NULL, "\xf4\x90\x80\x80");
	json_string(&j, NULL, "\xe2\x82");
	json_close(&j, ']');
	json_end(&j,
		 "[\"\", \"a \\\"quoted\\\" \\\\ word\", \"\\u0009\\u000a\\u0001\\u001f \x7f\", "
		 "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\", \"\\ufffd\", \"\\ufffd\\ufffd\", "
		 "\"\\ufffd\\ufffd\\ufffd\", \"\\ufffd\\ufffd\\ufffd\\ufffd\", "
		 "\"\\ufffd\\ufffd\"]");
}

static void test_keys(void)
{
	struct json j = json_begin();

	json_open(&j, NULL, '{');
	json_number(&j, "a\"b", 0);
	json_close(&j, '}');
	json_end(&j, "{\"a\\\"b\": 0}");
}

int main(void)
{
	test_nesting();
	test_strings();
	test_keys();
	return 0;
}
