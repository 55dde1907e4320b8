// SPDX-License-Identifier: BSD-2-Clause
/* Reads single lines; see netfile_line.h. */
#include "fabric/daemon/topology/netfile_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Moves *at behind a number in C's notation. */
static bool number_take(const char **at, uint64_t max, uint64_t *out)
{
	char *end;

	if (!is_digit(**at))
		return false;
	errno = 0;
	*out = strtoull(*at, &end, 0);
	*at = end;
	return !errno && *out <= max;
}

const char *number_read(const char *at, bool *relative, uint64_t *out)
{
	at = skip_blanks(at);
	*relative = *at == '+';
	if (*at != '=' && *at != '+')
		return "'=' is missing behind the word";
	at = skip_blanks(at + 1);
	return number_take(&at, UINT64_MAX, out) ? NULL : "this is not a number";
}

const char *quoted_read(const char **at, char out[PLAN_NAME_BYTES])
{
	const char *begin = skip_blanks(*at), *end;

	if (*begin != '"')
		return "a name in quotes is missing";
	end = strchr(begin + 1, '"');
	if (!end)
		return "the quote does not end";
	if (end == begin + 1)
		return "the name is empty";
	if ((size_t)(end - begin) > PLAN_NAME_BYTES)
		return "the name has more than 64 characters";
	memcpy(out, begin + 1, (size_t)(end - begin - 1));
	out[end - begin - 1] = '\0';
	*at = end + 1;
	return NULL;
}

/* Reads "[7]". */
static const char *bracket_read(const char **at, uint32_t *out)
{
	const char *p = skip_blanks(*at);
	uint64_t v;

	if (*p != '[')
		return "'[' and the number of a port are missing";
	p = skip_blanks(p + 1);
	if (!number_take(&p, PLAN_PORTS_MAX, &v))
		return "the number of a port is from 1 to 254";
	p = skip_blanks(p);
	if (*p != ']')
		return "']' is missing behind the number of a port";
	*at = p + 1;
	*out = (uint32_t)v;
	return NULL;
}

/* Skips "(guid)", which says only what is known. */
static const char *skip_guid(const char *at)
{
	const char *end;

	at = skip_blanks(at);
	end = *at == '(' ? strchr(at, ')') : NULL;
	return end ? end + 1 : at;
}

/* Finds the number behind a word that stands by itself. */
static bool attribute_find(const char *text, const char *word, uint32_t *out)
{
	size_t n = strlen(word);
	uint64_t v;

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
		const char *number = skip_blanks(at + n);

		if ((at == text || at[-1] == ' ' || at[-1] == '\t') && number != at + n &&
		    number_take(&number, UINT32_MAX, &v)) {
			*out = (uint32_t)v;
			return true;
		}
	}
	return false;
}

/* ---- nodes ---- */

static const struct {
	const char *word;
	enum smp_node_type type;
} node_words[] = {
	{"Switch", SMP_NODE_SWITCH},
	{"Hca", SMP_NODE_CA},
	{"Ca", SMP_NODE_CA},
	{"Rt", SMP_NODE_ROUTER},
};

/* Reads the word for a type of node; NULL: there is none.  *at moves behind the word. */
static const enum smp_node_type *node_word(const char **at)
{
	for (unsigned i = 0; i < array_size(node_words); i++) {
		size_t n = strlen(node_words[i].word);

		if (strncmp(*at, node_words[i].word, n) != 0 ||
		    ((*at)[n] != ' ' && (*at)[n] != '\t'))
			continue;
		*at += n;
		return &node_words[i].type;
	}
	return NULL;
}

bool node_line_begins(const char *line)
{
	return node_word(&line);
}

/* Finds where words begin that are not part of a description without quotes. */
static size_t description_length(const char *text)
{
	static const char *const ends[] = {" enhanced port ", " base port ", " lid ", " lmc "};
	size_t n = strlen(text);

	for (unsigned i = 0; i < array_size(ends); i++) {
		const char *end = strstr(text, ends[i]);

		if (end && (size_t)(end - text) < n)
			n = (size_t)(end - text);
	}
	while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
		n--;
	return n;
}

static const char *description_read(const char **at, char out[PLAN_NAME_BYTES])
{
	size_t n;

	*at = skip_blanks(*at);
	if (**at == '"')
		return quoted_read(at, out);
	n = description_length(*at);
	if (n >= PLAN_NAME_BYTES)
		return "the description has more than 64 characters";
	memcpy(out, *at, n);
	out[n] = '\0';
	*at += n;
	return NULL;
}

const char *node_line_read(const char *line, struct node_line *out)
{
	const enum smp_node_type *type = node_word(&line);
	const char *wrong;
	uint64_t nports;

	*out = (struct node_line){0};
	if (!type)
		return "no such kind of node";
	out->type = *type;
	line = skip_blanks(line);
	if (!number_take(&line, PLAN_PORTS_MAX, &nports) || !nports)
		return "a node has 1 to 254 ports";
	out->nports = (uint32_t)nports;
	wrong = quoted_read(&line, out->id);
	line = skip_blanks(line);
	if (wrong || *line != '#')
		return wrong;
	line++;
	wrong = description_read(&line, out->description);
	if (wrong)
		return wrong;
	out->enhanced_port0 = strstr(line, "enhanced port 0");
	attribute_find(line, "lid", &out->lid);
	attribute_find(line, "lmc", &out->lmc);
	return NULL;
}

/* ---- ports ---- */

/* Reads " w=2 s=4 e=1": masks as in PortInfo. */
static const char *options_read(const char **at, struct port_line *out)
{
	for (;;) {
		const char *p = skip_blanks(*at);
		uint8_t *to = *p == 'w'	  ? &out->width
			      : *p == 's' ? &out->speed
			      : *p == 'e' ? &out->ext_speed
					  : NULL;
		uint64_t v;

		if (!to || p[1] != '=')
			return NULL;
		p += 2;
		if (!number_take(&p, to == &out->width ? 31 : 15, &v))
			return "w=, s= and e= take a mask as PortInfo has it";
		*to = (uint8_t)v;
		*at = p;
	}
}

/* Reads "4xSDR". */
static bool rate_read(const char *word, size_t n, struct port_line *out)
{
	static const struct {
		const char *name;
		uint8_t mask;
	} widths[] = {{"1x", 1}, {"2x", 16}, {"4x", 2}, {"8x", 4}, {"12x", 8}};
	static const struct {
		const char *name;
		uint8_t speed, ext_speed;
	} speeds[] = {{"SDR", 1, 0}, {"DDR", 2, 0}, {"QDR", 4, 0}, {"FDR10", 4, 0},
		      {"FDR", 4, 1}, {"EDR", 4, 2}, {"HDR", 4, 4}, {"NDR", 4, 8}};

	for (unsigned w = 0; w < array_size(widths); w++) {
		size_t begin = strlen(widths[w].name);

		if (n <= begin || memcmp(word, widths[w].name, begin) != 0)
			continue;
		for (unsigned s = 0; s < array_size(speeds); s++) {
			if (n - begin != strlen(speeds[s].name) ||
			    memcmp(word + begin, speeds[s].name, n - begin) != 0)
				continue;
			out->width = widths[w].mask;
			out->speed = speeds[s].speed;
			out->ext_speed = speeds[s].ext_speed;
			return true;
		}
	}
	return false;
}

/*
 * Reads what follows '#': "lid 1 lmc 0 "description" lid 7 4xSDR"; the LID behind the description
 * is that of the other end.
 */
static void tail_read(const char *tail, struct port_line *out)
{
	const char *quote = strchr(tail, '"'), *end = quote ? strchr(quote + 1, '"') : NULL;
	char own[64];

	if (!end)
		return;
	if ((size_t)(quote - tail) < sizeof(own)) {
		memcpy(own, tail, (size_t)(quote - tail));
		own[quote - tail] = '\0';
		attribute_find(own, "lid", &out->lid);
		attribute_find(own, "lmc", &out->lmc);
	}
	for (const char *word = skip_blanks(end + 1); *word;) {
		size_t n = strcspn(word, " \t");

		if (rate_read(word, n, out))
			return;
		word = skip_blanks(word + n);
	}
}

const char *port_line_read(const char *line, bool is_switch, struct port_line *out)
{
	const char *wrong;

	*out = (struct port_line){.remote_number = 1};
	wrong = bracket_read(&line, &out->number);
	if (wrong)
		return wrong;
	line = skip_guid(line);
	wrong = quoted_read(&line, out->remote);
	if (wrong)
		return wrong;
	if (*skip_blanks(line) == '[')
		wrong = bracket_read(&line, &out->remote_number);
	if (wrong)
		return wrong;
	line = skip_guid(line);
	wrong = options_read(&line, out);
	if (wrong)
		return wrong;
	line = strchr(line, '#');
	if (line)
		tail_read(line + 1, out);
	/* Ports of switches have no LID. */
	if (is_switch)
		out->lid = out->lmc = 0;
	return NULL;
}

const char *alias_line_read(const char *line, struct alias_line *out)
{
	const char *wrong;

	line++;
	wrong = bracket_read(&line, &out->number);
	return wrong ? wrong : quoted_read(&line, out->name);
}
