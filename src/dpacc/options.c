// SPDX-License-Identifier: BSD-2-Clause
/* Reads the command line as NVIDIA's build scripts write it: options with one or two dashes, lists
 * separated by commas or spaces or both with empty pieces in them, and options of a RISC-V
 * compiler. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "dpacc/look.h"
#include "dpacc/options.h"
#include "dpacc/words.h"

/* flexio.h's FLEXIO_MAX_NAME_LEN: bytes of an application's name. */
#define NAME_BYTES 256

static void options_words(struct options *options, const struct words *words, int depth);

static void take_output(struct options *options, const char *value)
{
	options->output = value;
}

static void take_app(struct options *options, const char *value)
{
	options->app = value;
}

static void take_host_compiler(struct options *options, const char *value)
{
	options->host_compiler = value;
}

static void take_host(struct options *options, const char *value)
{
	words_split(&options->host, value);
}

static void take_device(struct options *options, const char *value)
{
	words_split(&options->device, value);
}

static void take_device_link(struct options *options, const char *value)
{
	words_split(&options->device_link, value);
}

static void take_include(struct options *options, const char *value)
{
	words_addf(&options->device, "-I%s", value);
}

static void take_define(struct options *options, const char *value)
{
	words_addf(&options->device, "-D%s", value);
}

static void take_undefine(struct options *options, const char *value)
{
	words_addf(&options->device, "-U%s", value);
}

static void take_optimize(struct options *options, const char *value)
{
	words_addf(&options->device, "-O%s", value);
}

static void take_library_path(struct options *options, const char *value)
{
	words_addf(&options->device_link, "-L%s", value);
}

static void take_cpu(struct options *options, const char *value)
{
	options->look.target = look_target(value);
	if (!options->look.target)
		give_up("-mcpu=%s: the first target is none of nv-dpa-bf3, nv-dpa-cx7, nv-dpa-cx8, "
			"nv-dpa-cx9",
			value);
}

static void take_keep_dir(struct options *options, const char *value)
{
	options->keep = value;
}

/* What the attributes allow a card's process is allowed here anyway, but a wrong file is a mistake. */
static void take_attributes(struct options *options, const char *value)
{
	struct stat file;

	(void)options;
	if (stat(value, &file))
		give_up("--dpa-proc-attr=%s: %s", value, strerror(errno));
	if (!S_ISREG(file.st_mode) || file.st_size % 4 || file.st_size >= 1024)
		give_up("--dpa-proc-attr=%s: no blob of dpa-app-attributes2blob", value);
}

/* Libraries of the host program change nothing here. */
static void take_nothing(struct options *options, const char *value)
{
	(void)options;
	(void)value;
}

static void flag_keep(struct options *options)
{
	if (!options->keep)
		options->keep = ".";
}

static void flag_compile(struct options *options)
{
	options->compile = true;
}

static void flag_libraries(struct options *options)
{
	options->libraries = true;
}

static void flag_shared(struct options *options)
{
	options->shared = true;
}

static void flag_verbose(struct options *options)
{
	options->verbose = true;
}

static void flag_dry(struct options *options)
{
	options->dry = true;
}

static void flag_checked(struct options *options)
{
	options->look.checked = true;
}

static void flag_unchecked(struct options *options)
{
	options->look.checked = false;
}

static void flag_nothing(struct options *options)
{
	(void)options;
}

static void flag_version(struct options *options)
{
	(void)options;
	help_version("dpacc");
	exit(0);
}

static void flag_help(struct options *options)
{
	(void)options;
	help_dpacc();
	exit(0);
}

/* The names behind the dashes.  An option either has a value or has none. */
static const struct {
	const char *name;
	void (*flag)(struct options *options);
	void (*take)(struct options *options, const char *value);
} table[] = {
	{"o", .take = take_output},
	{"output-file", .take = take_output},
	{"app-name", .take = take_app},
	{"hostcc", .take = take_host_compiler},
	{"hostcc-options", .take = take_host},
	{"devicecc-options", .take = take_device},
	{"devicelink-options", .take = take_device_link},
	{"device-libs", .take = take_device_link},
	{"mcpu", .take = take_cpu},
	{"I", .take = take_include},
	{"include-path", .take = take_include},
	{"common-include-path", .take = take_include},
	{"D", .take = take_define},
	{"define-macro", .take = take_define},
	{"U", .take = take_undefine},
	{"undefine-macro", .take = take_undefine},
	{"O", .take = take_optimize},
	{"optimize", .take = take_optimize},
	{"L", .take = take_library_path},
	{"library-path", .take = take_library_path},
	{"l", .take = take_nothing},
	{"library", .take = take_nothing},
	{"dpa-proc-attr", .take = take_attributes},
	{"keep-dir", .take = take_keep_dir},
	{"keep", .flag = flag_keep},
	{"c", .flag = flag_compile},
	{"compile", .flag = flag_compile},
	{"gen-libs", .flag = flag_libraries},
	{"shared", .flag = flag_shared},
	{"flto", .flag = flag_nothing},
	{"disable-asm-checks", .flag = flag_nothing},
	{"checked", .flag = flag_checked},
	{"unchecked", .flag = flag_unchecked},
	{"dryrun", .flag = flag_dry},
	{"v", .flag = flag_verbose},
	{"verbose", .flag = flag_verbose},
	{"V", .flag = flag_version},
	{"version", .flag = flag_version},
	{"h", .flag = flag_help},
	{"help", .flag = flag_help},
};

static char *file_text(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t bytes = 0;

	if (!file)
		give_up("%s: cannot be read", path);
	if (getdelim(&text, &bytes, 0, file) < 0)
		text = text_of("%s", "");
	fclose(file);
	return text;
}

static void options_file(struct options *options, const char *path, int depth)
{
	struct words words = {0};

	if (depth > 8)
		give_up("%s: options files name each other too deeply", path);
	words_parse(&words, file_text(path));
	options_words(options, &words, depth + 1);
}

/* Returns the value behind '=', or the next word. */
static const char *option_value(const char *word, const struct words *words, size_t *at)
{
	const char *equals = strchr(word, '=');

	if (equals)
		return equals + 1;
	if (*at + 1 >= words->count)
		give_up("%s: its value is missing", word);
	return words->words[++*at];
}

/* Takes -Idir, -O2 and other options that the device's compiler understands without being asked. */
static bool option_joined(struct options *options, const char *word)
{
	const char *name = word + 1 + (word[1] == '-');

	if (!name[0] || !name[1])
		return false;
	if (word[1] != '-' && (strchr("IDUWfgm", name[0]) || text_begins(name, "std=")))
		words_add(&options->device, word);
	else if (name[0] == 'l')
		take_nothing(options, name + 1);
	else if (name[0] == 'L')
		take_library_path(options, name + 1);
	else if (name[0] == 'O' && name[1] != 'p')
		words_addf(&options->device, "-%s", name);
	else
		return false;
	return true;
}

static void options_option(struct options *options, const struct words *words, size_t *at,
			   int depth)
{
	const char *word = words->words[*at], *name = word + 1 + (word[1] == '-');
	size_t length = strcspn(name, "=");

	if (!strcmp(word, "-g")) {
		words_add(&options->device, word);
		return;
	}
	if ((length == 4 && text_begins(name, "optf")) ||
	    (length == 12 && text_begins(name, "options-file"))) {
		options_file(options, option_value(word, words, at), depth);
		return;
	}
	for (size_t i = 0; i < array_size(table); i++) {
		if (strlen(table[i].name) != length || strncmp(table[i].name, name, length) != 0)
			continue;
		if (table[i].take)
			table[i].take(options, option_value(word, words, at));
		else if (name[length])
			give_up("%s: this option has no value", word);
		else
			table[i].flag(options);
		return;
	}
	if (!option_joined(options, word))
		give_up("%s: no such option; see dpacc --help", word);
}

/*
 * Takes a file that is no device code and no option; the linker would take a source for a script.
 */
static void options_input(struct options *options, const char *name)
{
	static const char *const host[] = {".cc", ".cpp", ".cxx", ".C", ".h", ".hpp"};

	for (size_t i = 0; i < array_size(host); i++)
		if (text_ends(name, host[i]))
			give_up("%s: device code is C, in files *.c; code for the host is for the "
				"host's compiler, which links it with the archive",
				name);
	words_add(&options->inputs, name);
}

static void options_words(struct options *options, const struct words *words, int depth)
{
	for (size_t i = 0; i < words->count; i++) {
		const char *word = words->words[i];

		if (!*word)
			continue;
		if (word[0] == '-' && word[1])
			options_option(options, words, &i, depth);
		else if (text_ends(word, ".c"))
			words_add(&options->sources, word);
		else
			options_input(options, word);
	}
}

static void options_check_app(const char *name)
{
	bool good = isalpha((unsigned char)*name) || *name == '_';

	for (const char *at = name; *at; at++)
		good = good && (isalnum((unsigned char)*at) || *at == '_');
	if (!good)
		give_up("--app-name=%s: it becomes the name of a variable and must be one", name);
	if (strlen(name) > NAME_BYTES)
		give_up("--app-name=%.20s...: longer than FLEXIO_MAX_NAME_LEN (%d)", name,
			NAME_BYTES);
}

static void options_check_files(const struct options *options)
{
	if (!options->sources.count && (!options->inputs.count || options->compile))
		give_up("no source is named; see dpacc --help");
	if (options->compile && options->libraries)
		give_up("--compile and --gen-libs: one or the other");
	if (options->shared && (options->compile || options->libraries))
		give_up("--shared: with a program alone, not with --compile or --gen-libs");
	if (options->compile && options->output && options->sources.count > 1)
		give_up("-o %s: with --compile, each of several sources has an object of its own",
			options->output);
	if (!options->compile && !options->output)
		give_up("-o is missing: the archive to write");
}

void options_read(struct options *options, int argc, char **argv)
{
	struct words words = {0};

	*options = (struct options){.host_compiler = "gcc",
				    .app = "__dpa_a_out",
				    .look = {.target = "__NV_DPA_BF3", .checked = true}};
	for (int i = 1; i < argc; i++)
		words_add(&words, argv[i]);
	options_words(options, &words, 0);
	options_check_files(options);
	options->strip = words_have(&options->device, "-g0");
	options_check_app(options->app);
}
