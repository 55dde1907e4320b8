// SPDX-License-Identifier: BSD-2-Clause
/* See tie_spec.h. */
#include "tool/tie_spec.h"

#include <string.h>

#include "base/text.h"

#define RATE_MAX  100000000u
#define LOOPS_MAX 100000000u

/* Takes WORD=VALUE; false: it is not one of the words, or comes twice, or has no value. */
static bool word_take(struct tie_spec *t, const char *argument)
{
	const struct {
		const char *word;
		const char **value;
	} words[] = {
		{"tap=", &t->tap}, {"port=", &t->port},	     {"in=", &t->in},
		{"out=", &t->out}, {"pace=", &t->pace_text}, {"loop=", &t->loop_text},
	};

	for (size_t i = 0; i < array_size(words); i++) {
		size_t n = strlen(words[i].word);

		if (strncmp(argument, words[i].word, n) != 0)
			continue;
		if (*words[i].value || !argument[n])
			return false;
		*words[i].value = argument + n;
		return true;
	}
	return false;
}

static bool pace_read(struct tie_spec *t)
{
	t->pace = PACE_ORIGINAL;
	if (!t->pace_text || !strcmp(t->pace_text, "original"))
		return true;
	t->pace = strcmp(t->pace_text, "top") == 0 ? PACE_TOP : PACE_RATE;
	return t->pace == PACE_TOP || text_number(t->pace_text, RATE_MAX, &t->rate);
}

static bool loop_read(struct tie_spec *t)
{
	t->loops = 1;
	if (!t->loop_text)
		return true;
	t->loops = 0;
	return !strcmp(t->loop_text, "forever") || text_number(t->loop_text, LOOPS_MAX, &t->loops);
}

bool tie_spec_read(const struct session *s, int argc, char **argv, struct tie_spec *out)
{
	int kinds;

	*out = (struct tie_spec){0};
	for (int i = 0; i < argc; i++) {
		if (word_take(out, argv[i]))
			continue;
		tool_error(s->command, "'%s' is nothing to tie a port to; see %s --help", argv[i],
			   s->command);
		return false;
	}
	kinds = !!out->tap + !!out->port + (out->in || out->out);
	if (kinds != 1 || (!out->in && (out->pace_text || out->loop_text))) {
		tool_error(
			s->command,
			"a port is tied to a tap, a port, or files (in, out; pace and loop are of "
			"in); see %s --help",
			s->command);
		return false;
	}
	if (!pace_read(out)) {
		tool_error(s->command, "the pace is original, top or frames a second, not '%s'",
			   out->pace_text);
		return false;
	}
	if (!loop_read(out)) {
		tool_error(s->command, "loop is a number or forever, not '%s'", out->loop_text);
		return false;
	}
	return true;
}

void tie_spec_text(const struct tie_spec *t, char text[FABRIC_TIE_BYTES])
{
	if (t->tap)
		snprintf(text, FABRIC_TIE_BYTES, "tap=%s", t->tap);
	else
		snprintf(text, FABRIC_TIE_BYTES, "%s%.50s%s%s%.50s", t->in ? "in=" : "",
			 t->in ? t->in : "", t->in && t->out ? " " : "", t->out ? "out=" : "",
			 t->out ? t->out : "");
}
