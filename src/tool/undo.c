// SPDX-License-Identifier: BSD-2-Clause
/* See undo.h. */
#include "tool/undo.h"

#include <stdlib.h>
#include <string.h>

#define BEFORE	"SOFTHCA_BEFORE"
#define PRELOAD "LD_PRELOAD"

/* All variables that softhca env may set. */
static const char *const names[] = {
	"SOFTHCA_DIR",	   "SOFTHCA_HOST",	 "SOFTHCA_DAEMON",
	"SOFTHCA_MODEL",   "SOFTHCA_LINK_TYPES", "SOFTHCA_SIGNATURE_REPORTS",
	"SOFTHCA_TIMING",  "SOFTHCA_MEMORY",	 "SOFTHCA_TRACE",
	"SOFTHCA_EXPLAIN", "VALGRIND_OPTS",	 PRELOAD,
};

/* Their values before this process set any for the daemon. */
static char *values[array_size(names)];

/* Prints in single quotes, in which only the quote itself is special. */
static void quoted_print(const char *value, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (value[i] == '\'')
			fputs("'\\''", stdout);
		else
			putchar(value[i]);
	}
}

static void export_n(const char *name, const char *value, size_t n)
{
	printf("export %s='", name);
	quoted_print(value, n);
	puts("'");
}

void undo_export(const char *name, const char *value)
{
	export_n(name, value, strlen(value));
}

void undo_remember(void)
{
	for (size_t i = 0; i < array_size(names); i++) {
		const char *value = getenv(names[i]);

		values[i] = value ? strdup(value) : NULL;
	}
}

void undo_record(void)
{
	if (getenv(BEFORE))
		return;
	printf("export " BEFORE "='");
	for (size_t i = 0; i < array_size(names); i++) {
		const char *value = values[i];

		if (!value)
			continue;
		printf("%s=", names[i]);
		quoted_print(value, strlen(value));
		putchar('\n');
	}
	puts("'");
}

/* Returns the value in a line of the record; NULL: there was none. */
static const char *value_before(const char *record, const char *name, size_t *n)
{
	size_t len = strlen(name);

	while (*record) {
		size_t line = strcspn(record, "\n");

		if (line > len && !strncmp(record, name, len) && record[len] == '=') {
			*n = line - len - 1;
			return record + len + 1;
		}
		record += line + (record[line] == '\n');
	}
	return NULL;
}

/* Tells whether the list begins with our library. */
static bool preload_begins(const struct session *s, const char *list, size_t n)
{
	size_t ours = strlen(s->preload);

	return n >= ours && !strncmp(list, s->preload, ours) &&
	       (n == ours || list[ours] == ':' || list[ours] == ' ');
}

/* Tells whether the list is still what softhca env made of the one before. */
static bool preload_stands(const struct session *s, const char *now, const char *before, size_t n)
{
	size_t ours = strlen(s->preload);

	if (!n)
		return !strcmp(now, s->preload);
	if (preload_begins(s, before, n))
		return strlen(now) == n && !strncmp(now, before, n);
	return preload_begins(s, now, strlen(now)) && now[ours] == ':' &&
	       strlen(now + ours + 1) == n && !strncmp(now + ours + 1, before, n);
}

/* The user has changed the list: this keeps what they have added, and removes only our library. */
static void preload_remove(const struct session *s, const char *now)
{
	const char *separator = "";
	size_t n;

	printf("export " PRELOAD "='");
	for (const char *p = now; *p; p += n + (p[n] != '\0')) {
		n = strcspn(p, " :");
		if (!n || (n == strlen(s->preload) && !strncmp(p, s->preload, n)))
			continue;
		fputs(separator, stdout);
		quoted_print(p, n);
		separator = ":";
	}
	puts("'");
}

int undo_print(const struct session *s)
{
	const char *record = getenv(BEFORE), *value;
	size_t n = 0;

	if (!record) {
		tool_error(s->command, "nothing to undo: no 'softhca env' was evaluated here");
		return EXIT_NOTHING;
	}
	for (size_t i = 0; i < array_size(names); i++) {
		const char *now = getenv(names[i]);

		n = 0;
		value = value_before(record, names[i], &n);
		if (!strcmp(names[i], PRELOAD) && now && !preload_stands(s, now, value, n))
			preload_remove(s, now);
		else if (value)
			export_n(names[i], value, n);
		else
			printf("unset %s\n", names[i]);
	}
	puts("unset " BEFORE);
	return fflush(stdout) ? EXIT_OURS : 0;
}
