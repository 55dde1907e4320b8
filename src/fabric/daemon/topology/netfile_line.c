// SPDX-License-Identifier: BSD-2-Clause
/* Reads single lines; see netfile.h. */
#include "fabric/daemon/topology/netfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads up to 16 hexadecimal digits, and returns how many there were. */
static unsigned hex_take(const char **at, uint64_t *out)
{
	unsigned n = 0;

	for (*out = 0; n < 16 && hex_digit(**at) >= 0; n++, ++*at)
		*out = *out << 4 | (unsigned)hex_digit(**at);
	return n;
}

/* Reads "(8f10403961355)", if it is there. */
static const char *guid_read(const char **at, uint64_t *out)
{
	const char *p = skip_blanks(*at);

	*out = 0;
	if (*p != '(')
		return NULL;
	p++;
	(void)hex_take(&p, out);
	if (*p != ')')
		return "in brackets stands a GUID of up to 16 hexadecimal digits";
	*at = p + 1;
	return NULL;
}

/* Tells whether the rest of a line is a comment or nothing. */
static bool is_over(const char *at)
{
	at = skip_blanks(at);
	return !*at || *at == '#';
}

const char *number_read(const char *at, bool *relative, uint64_t *out, uint64_t *guid)
{
	const char *wrong;

	at = skip_blanks(at);
	*relative = *at == '+';
	if (*at != '=' && *at != '+')
		return "'=' is missing behind the word";
	at = skip_blanks(at + 1);
	if (!number_take(&at, UINT64_MAX, out))
		return "this is not a number";
	wrong = guid_read(&at, guid);
	if (wrong)
		return wrong;
	return is_over(at) ? NULL : "the number does not end where it should";
}

uint64_t id_guid(const char *id, enum smp_node_type type)
{
	static const char kinds[] = {
		[SMP_NODE_CA] = 'H', [SMP_NODE_SWITCH] = 'S', [SMP_NODE_ROUTER] = 'R'};
	uint64_t guid;

	if (id[0] != kinds[type] || id[1] != '-')
		return 0;
	id += 2;
	return hex_take(&id, &guid) == 16 && !*id ? guid : 0;
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

/* Skips "[ext 7]", the number of a port on its chassis (ibnetdiscover -g). */
static const char *skip_external(const char *at)
{
	const char *end;

	at = skip_blanks(at);
	end = !strncmp(at, "[ext ", 5) ? strchr(at, ']') : NULL;
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

/*
 * Reads a description in quotes.  ibnetdiscover does not mark quotes within it, so it ends at the
 * last one of the line.
 */
static const char *quoted_description_read(const char **at, char out[PLAN_NAME_BYTES])
{
	const char *begin = *at + 1, *end = strrchr(begin, '"');

	if (!end)
		return "the quote does not end";
	if ((size_t)(end - begin) >= PLAN_NAME_BYTES)
		return "the description has more than 64 characters";
	memcpy(out, begin, (size_t)(end - begin));
	out[end - begin] = '\0';
	*at = end + 1;
	return NULL;
}

static const char *description_read(const char **at, char out[PLAN_NAME_BYTES])
{
	size_t n;

	*at = skip_blanks(*at);
	if (**at == '"')
		return quoted_description_read(at, out);
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
	if (wrong)
		return wrong;
	if (!is_over(line))
		return "something that is no comment follows the id";
	line = skip_blanks(line);
	if (!*line)
		return NULL;
	line = skip_blanks(line + 1);
	out->described = *line == '"';
	wrong = description_read(&line, out->description);
	if (wrong)
		return wrong;
	out->described = out->described || out->description[0];
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

/* Finds the name with which the text begins, whatever its case. */
static bool name_begins(const char *text, const char *name)
{
	return !strncasecmp(text, name, strlen(name));
}

/* Reads "4x", as ibnetdiscover prints it, or "4X", as other programs do.  "??": it is not known. */
static const char *width_read(const char *at, uint8_t *width)
{
	static const struct {
		const char *name;
		uint8_t mask;
	} widths[] = {{"1x", 1}, {"2x", 16}, {"4x", 2}, {"8x", 4}, {"12x", 8}, {"??", 0}};

	for (unsigned i = 0; i < array_size(widths); i++) {
		if (!name_begins(at, widths[i].name))
			continue;
		*width = widths[i].mask;
		return at + strlen(widths[i].name);
	}
	return NULL;
}

/* The names that programs of rdma-core print now or have printed. */
static const struct speed_name {
	const char *name;
	uint8_t speed, ext_speed;
	bool xdr, fdr10;
} speed_names[] = {
	{.name = "SDR", .speed = 1},
	{.name = "DDR", .speed = 2},
	{.name = "QDR", .speed = 4},
	{.name = "FDR10", .speed = 4, .fdr10 = true},
	{.name = "FDR", .speed = 4, .ext_speed = 1},
	{.name = "EDR", .speed = 4, .ext_speed = 2},
	{.name = "HDR", .speed = 4, .ext_speed = 4},
	{.name = "NDR", .speed = 4, .ext_speed = 8},
	{.name = "XDR", .speed = 4, .xdr = true},
	{.name = "2.5", .speed = 1},
	{.name = "5.0", .speed = 2},
	{.name = "5", .speed = 2},
	{.name = "10.0", .speed = 4},
	{.name = "10", .speed = 4},
	{.name = "14.0625", .speed = 4, .ext_speed = 1},
	{.name = "14", .speed = 4, .ext_speed = 1},
	{.name = "25.78125", .speed = 4, .ext_speed = 2},
	{.name = "25", .speed = 4, .ext_speed = 2},
	{.name = "53.125", .speed = 4, .ext_speed = 4},
	{.name = "50", .speed = 4, .ext_speed = 4},
	{.name = "106.25", .speed = 4, .ext_speed = 8},
	{.name = "100", .speed = 4, .ext_speed = 8},
	{.name = "212.5", .speed = 4, .xdr = true},
	{.name = "200", .speed = 4, .xdr = true},
	{.name = "???"}, /* the program did not know it */
};

/* Finds the end of a speed's name, with "Gbps" or without; NULL: the text is another word. */
static const char *speed_end(const char *text, const char *name)
{
	const char *end = text + strlen(name);

	if (!name_begins(text, name))
		return NULL;
	if (name_begins(skip_blanks(end), "Gbps"))
		end = skip_blanks(end) + strlen("Gbps");
	return !*end || *end == ' ' || *end == '\t' ? end : NULL;
}

/* Reads "4xSDR", "4X 10.0 Gbps" and the like.  False: it is something else. */
static bool rate_read(const char *at, struct port_line *out)
{
	uint8_t width = 0;

	at = width_read(at, &width);
	if (!at)
		return false;
	at = skip_blanks(at);
	for (unsigned i = 0; i < array_size(speed_names); i++) {
		const struct speed_name *s = &speed_names[i];

		if (!speed_end(at, s->name))
			continue;
		out->rated = true;
		out->width = width;
		out->speed = s->speed;
		out->ext_speed = s->ext_speed;
		out->xdr = s->xdr;
		out->fdr10 = s->fdr10;
		/* "10.0 Gbps" may go on. */
		if (!strcmp(s->name, "10.0") &&
		    name_begins(skip_blanks(speed_end(at, s->name)), "(FDR10)"))
			out->fdr10 = true;
		return true;
	}
	return false;
}

/*
 * Reads what follows '#': "lid 1 lmc 0 "description" lid 7 4xSDR"; the LID behind the description
 * is that of the other end.  Other comments mean nothing.
 */
static const char *tail_read(const char *tail, struct port_line *out)
{
	const char *quote = strchr(tail, '"'), *end = quote ? strrchr(quote + 1, '"') : NULL;
	char own[64];
	uint64_t lid;

	tail = skip_blanks(tail);
	if (!quote || (size_t)(quote - tail) >= sizeof(own))
		return NULL;
	memcpy(own, tail, (size_t)(quote - tail));
	own[quote - tail] = '\0';
	if (!end)
		return attribute_find(own, "lid", &out->lid) || quote == tail
			       ? "the quote does not end"
			       : NULL;
	attribute_find(own, "lid", &out->lid);
	attribute_find(own, "lmc", &out->lmc);
	tail = skip_blanks(end + 1);
	if (strncmp(tail, "lid ", 4) != 0)
		return NULL;
	tail = skip_blanks(tail + 4);
	if (!number_take(&tail, UINT16_MAX, &lid))
		return "behind 'lid' stands a number";
	tail = skip_blanks(tail);
	return !*tail || rate_read(tail, out) ? NULL : "this is no width and speed of a link";
}

const char *port_line_read(const char *line, bool is_switch, struct port_line *out)
{
	const char *wrong;

	*out = (struct port_line){.remote_number = 1};
	wrong = bracket_read(&line, &out->number);
	if (wrong)
		return wrong;
	line = skip_external(line);
	wrong = guid_read(&line, &out->guid);
	if (!wrong)
		wrong = quoted_read(&line, out->remote);
	if (!wrong && *skip_blanks(line) == '[')
		wrong = bracket_read(&line, &out->remote_number);
	if (wrong)
		return wrong;
	line = skip_external(line);
	wrong = guid_read(&line, &out->remote_guid);
	if (!wrong)
		wrong = options_read(&line, out);
	if (wrong)
		return wrong;
	if (!is_over(line))
		return "something that is no comment follows the other end";
	line = skip_blanks(line);
	if (*line)
		wrong = tail_read(line + 1, out);
	if (wrong)
		return wrong;
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
