// SPDX-License-Identifier: BSD-2-Clause
/*
 * dpa-app-attributes2blob: the attributes of a DPA process as text (YAML) and as a blob, which dpacc
 * takes by --dpa-proc-attr.  On a card the attributes are what a signed application may do; here
 * every application may do everything.  Which bit of NVIDIA's blob means what is not public, so the
 * numbers are our own.
 */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "dpacc/look.h"
#include "dpacc/words.h"

#define BLOB_BYTES     8u    /* unless --blob-size says another size */
#define BLOB_BYTES_END 1024u /* the sizes are below */

static const char usage[] =
	"Usage: dpa-app-attributes2blob [--yaml2bin] [--blob-size BYTES] ATTRIBUTES.yaml BLOB\n"
	"       dpa-app-attributes2blob --bin2yaml [--restrictive|--notification] BLOB "
	"ATTRIBUTES.yaml\n"
	"Converts the attributes of a DPA process to a blob for dpacc --dpa-proc-attr, or back.\n"
	"  --yaml2bin          to a blob (the default)\n"
	"  --bin2yaml          to text\n"
	"  --blob-size BYTES   a multiple of 4 below 1024 (8)\n"
	"  --restrictive       a bit without a meaning is an error (the default)\n"
	"  --notification      a bit without a meaning is a warning\n"
	"  --version, --help\n";

/* The features that public samples name; the place is the bit. */
static const struct {
	const char *name, *text;
} features[] = {
	{"Generating_Empty_CQE", "completions that no work request has caused"},
	{"Device_Emulation", "doorbells and interrupts of emulated PCI devices"},
	{"Programmable_Congestion_Control", "algorithms of congestion control"},
	{"Congestion_Control_Flow_Context_Access", "the contexts of congestion control's flows"},
};

struct conversion {
	const char *from, *to;
	unsigned long bytes; /* of the blob */
	bool to_text, lenient;
	bool has_list; /* the text has a Feature_list */
	uint8_t blob[BLOB_BYTES_END];
	struct words named;
};

/* ---- text to blob ---- */

static int feature_bit(const char *name)
{
	for (size_t i = 0; i < array_size(features); i++)
		if (!strcmp(name, features[i].name))
			return (int)i;
	return -1;
}

/* Returns 1, 0, or -1 if the text is neither yes nor no. */
static int text_truth(const char *text)
{
	static const char *const truths[][3] = {{"false", "no", "off"}, {"true", "yes", "on"}};

	for (int truth = 0; truth < 2; truth++)
		for (int i = 0; i < 3; i++)
			if (!strcasecmp(text, truths[truth][i]))
				return truth;
	return -1;
}

static void feature_take(struct conversion *c, int line, const char *name, const char *value)
{
	int truth = text_truth(value), bit = feature_bit(name);

	if (words_have(&c->named, name))
		report_at(c->from, line, "%s: a second time", name);
	words_add(&c->named, name);
	if (truth < 0) {
		report_at(c->from, line, "%s: neither true nor false, but '%s'", name, value);
		return;
	}
	if (bit < 0)
		fprintf(stderr, "%s:%d: warning: %s: no feature that is known here; left out\n",
			c->from, line, name);
	else if (truth && (unsigned long)bit < c->bytes * 8)
		c->blob[bit / 8] |= (uint8_t)(1u << bit % 8);
}

/* Cuts off the comment and the space at the end. */
static void line_trim(char *line)
{
	size_t length;

	for (char *at = line; *at; at++)
		if (*at == '#' && (at == line || isspace((unsigned char)at[-1])))
			*at = 0;
	length = strlen(line);
	while (length && isspace((unsigned char)line[length - 1]))
		line[--length] = 0;
}

static void line_take(struct conversion *c, int number, char *line)
{
	size_t indent;
	char *colon, *value;

	line_trim(line);
	indent = strspn(line, " ");
	if (!line[indent] || !strcmp(line, "---") || !strcmp(line, "..."))
		return;
	colon = strchr(line, ':');
	if (!colon || line[indent] == '\t' || (colon[1] && colon[1] != ' ')) {
		report_at(c->from, number, "not 'NAME: VALUE'");
		return;
	}
	*colon = 0;
	value = colon + 1 + strspn(colon + 1, " ");
	if (indent) {
		if (c->has_list)
			feature_take(c, number, line + indent, value);
		else
			report_at(c->from, number, "%s is in no Feature_list", line + indent);
	} else if (strcmp(line, "Feature_list") != 0 || c->has_list) {
		report_at(c->from, number, "%s: there is one Feature_list and nothing beside it",
			  line);
	} else {
		c->has_list = true;
		if (*value && strcmp(value, "{}") != 0 && strcmp(value, "null") != 0)
			report_at(c->from, number, "features are named in lines of their own");
	}
}

static void text_read(struct conversion *c)
{
	FILE *file = fopen(c->from, "re");
	char *line = NULL;
	size_t room = 0;

	if (!file)
		give_up("%s: %s", c->from, strerror(errno));
	for (int number = 1; getline(&line, &room, file) > 0; number++)
		line_take(c, number, line);
	if (ferror(file))
		give_up("%s: cannot be read", c->from);
	free(line);
	fclose(file);
	if (!c->has_list)
		report_at(c->from, 1, "no Feature_list");
	report_check();
}

/* ---- blob to text ---- */

static void blob_check(struct conversion *c)
{
	for (size_t bit = array_size(features); bit < c->bytes * 8; bit++) {
		if (!(c->blob[bit / 8] & 1u << bit % 8))
			continue;
		if (!c->lenient)
			give_up("%s: bit %zu has no meaning here", c->from, bit);
		fprintf(stderr, "%s: warning: bit %zu has no meaning here\n", c->from, bit);
	}
}

static void blob_read(struct conversion *c)
{
	FILE *file = fopen(c->from, "re");

	if (!file)
		give_up("%s: %s", c->from, strerror(errno));
	c->bytes = fread(c->blob, 1, sizeof(c->blob), file);
	if (ferror(file) || !c->bytes || c->bytes % 4 || c->bytes >= BLOB_BYTES_END)
		give_up("%s: not a blob, which has a multiple of 4 bytes, below %u", c->from,
			BLOB_BYTES_END);
	fclose(file);
	blob_check(c);
}

/* ---- both ---- */

static void output_write(const struct conversion *c)
{
	FILE *file = fopen(c->to, "we");
	bool failed;

	if (!file)
		give_up("%s: %s", c->to, strerror(errno));
	if (c->to_text) {
		fputs("Feature_list:\n", file);
		for (size_t i = 0; i < array_size(features); i++)
			fprintf(file, "  # %s\n  %s: %s\n", features[i].text, features[i].name,
				c->blob[i / 8] & 1u << i % 8 ? "true" : "false");
	} else {
		fwrite(c->blob, 1, c->bytes, file);
	}
	failed = ferror(file);
	if (fclose(file) || failed)
		give_up("%s: cannot be written", c->to);
}

static unsigned long blob_size(const char *text)
{
	char *end;
	unsigned long bytes = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || !bytes || bytes % 4 ||
	    bytes >= BLOB_BYTES_END)
		give_up("--blob-size %s: a multiple of 4 below %u", text, BLOB_BYTES_END);
	return bytes;
}

static void file_take(struct conversion *c, const char *word)
{
	if (!c->from)
		c->from = word;
	else if (!c->to)
		c->to = word;
	else
		give_up("%s: two files are enough", word);
}

static void arguments_read(struct conversion *c, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			fputs(usage, stdout);
			exit(0);
		} else if (!strcmp(word, "--version")) {
			help_version("dpa-app-attributes2blob");
			exit(0);
		} else if (!strcmp(word, "--yaml2bin") || !strcmp(word, "--bin2yaml")) {
			c->to_text = word[2] == 'b';
		} else if (!strcmp(word, "--restrictive") || !strcmp(word, "--notification")) {
			c->lenient = word[2] == 'n';
		} else if (text_begins(word, "--blob-size=")) {
			c->bytes = blob_size(strchr(word, '=') + 1);
		} else if (!strcmp(word, "--blob-size") && i + 1 < argc) {
			c->bytes = blob_size(argv[++i]);
		} else if (word[0] == '-') {
			give_up("%s: no such option; see dpa-app-attributes2blob --help", word);
		} else {
			file_take(c, word);
		}
	}
	if (!c->to)
		give_up("two files are needed; see dpa-app-attributes2blob --help");
}

int main(int argc, char **argv)
{
	struct conversion c = {.bytes = BLOB_BYTES};

	report_name = "dpa-app-attributes2blob";
	arguments_read(&c, argc, argv);
	if (c.to_text)
		blob_read(&c);
	else
		text_read(&c);
	output_write(&c);
	return 0;
}
