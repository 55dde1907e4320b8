// SPDX-License-Identifier: BSD-2-Clause
/* dpa-clang: the device's compiler alone, which is clang with the options of the device's look. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/text.h"
#include "dpacc/look.h"
#include "dpacc/passes.h"
#include "dpacc/steps.h"
#include "dpacc/words.h"

struct call {
	struct look look;
	struct home home;
	struct words options; /* the user's, */
	struct words others;  /* and those of them that name neither sources nor the output */
	struct words sources;
	const char *output;
	bool passes; /* whether objects or assembly are made of C */
	bool assembly;
};

/* Takes one word; returns how many words belong to it. */
static int call_take(struct call *call, char *const *words)
{
	static const char *const without[] = {
		"-E", "-M", "-MM", "-fsyntax-only", "-emit-llvm", "-###", "-x",
	};
	const char *word = words[0];
	int count = look_has_value(word) && words[1] ? 2 : 1;

	/* The language is C anyway. */
	if (!strcmp(word, "-xc"))
		return 1;
	if (!strcmp(word, "-x") && words[1] && !strcmp(words[1], "c"))
		return 2;
	for (size_t i = 0; i < array_size(without); i++)
		if (!strcmp(word, without[i]))
			call->passes = false;
	if (!strcmp(word, "-S")) {
		call->assembly = true;
	} else if (!strcmp(word, "-o") && words[1]) {
		call->output = words[1];
		return 2;
	} else if (word[0] == '-' && word[1] == 'o') {
		call->output = word + 2;
	} else if (word[0] != '-' && text_ends(word, ".c")) {
		words_add(&call->sources, word);
	} else {
		for (int i = 0; i < count; i++)
			words_add(&call->others, words[i]);
	}
	return count;
}

static void call_read(struct call *call, int argc, char **argv)
{
	call->passes = true;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "--version")) {
			help_version("dpa-clang");
			exit(0);
		}
		if (!strcmp(word, "--unchecked"))
			call->look.checked = false;
		else if (!strcmp(word, "--checked"))
			call->look.checked = true;
		else if (text_begins(word, "-mcpu=") && look_target(strchr(word, '=') + 1))
			call->look.target = look_target(strchr(word, '=') + 1);
		else
			words_add(&call->options, word);
	}
	for (size_t i = 0; i < call->options.count;)
		i += (size_t)call_take(call, &call->options.words[i]);
}

/* What makes no object is left to clang. */
static _Noreturn void call_clang(const struct call *call)
{
	struct words command = {0};

	look_begin(&command, &call->look, &call->home);
	look_user(&command, &call->options);
	look_end(&command, &call->look, &call->options);
	/* dpa-clang links no programs: dpacc does. */
	if (call->passes)
		words_add(&command, "-c");
	execvp(command.words[0], command.words);
	give_up("%s: %s", command.words[0], strerror(errno));
}

static bool call_has(const struct call *call, const char *start)
{
	for (size_t i = 0; i < call->others.count; i++)
		if (text_begins(call->others.words[i], start))
			return true;
	return false;
}

/* The length of a path without its ending. */
static int path_stem(const char *path)
{
	const char *dot = strrchr(text_file_name(path), '.');

	return (int)(dot ? (size_t)(dot - path) : strlen(path));
}

static void call_compile(const struct call *call, const struct steps *steps, const char *source)
{
	const char *name = text_file_name(source), *object;
	int stem = path_stem(name);
	struct words dependencies = {0};

	object = call->output ? call->output
			      : text_of("%.*s%s", stem, name, call->assembly ? ".s" : ".o");
	if ((call_has(call, "-MD") || call_has(call, "-MMD")) && !call_has(call, "-MF"))
		words_addf(&dependencies, "-MF%.*s.d", path_stem(object), object);
	if (!call_has(call, "-MT") && !call_has(call, "-MQ"))
		words_addf(&dependencies, "-MT%s", object);
	passes_run(&(struct passes){.look = &call->look,
				    .home = &call->home,
				    .options = &call->others,
				    .dependencies = &dependencies,
				    .source = source,
				    .module = steps_path(steps, "%.*s.ll", stem, name),
				    .object = object,
				    .kind = call->assembly ? "-S" : "-c"},
		   steps);
}

int main(int argc, char **argv)
{
	struct call call = {.look = {.target = "__NV_DPA_BF3", .checked = true}};
	struct steps steps;

	report_name = "dpa-clang";
	call_read(&call, argc, argv);
	home_find(&call.home);
	if (!call.passes || !call.sources.count)
		call_clang(&call);
	if (call.output && call.sources.count > 1)
		give_up("-o %s: several sources have no output in common", call.output);
	steps_begin(&steps, NULL, words_have(&call.others, "-v"), false);
	for (size_t i = 0; i < call.sources.count; i++)
		call_compile(&call, &steps, call.sources.words[i]);
	return 0;
}
