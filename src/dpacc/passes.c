// SPDX-License-Identifier: BSD-2-Clause
/* How a source for the device becomes an object. */
#include "dpacc/passes.h"

#include <string.h>

#include "dpacc/constraints.h"
#include "dpacc/rewrite.h"

static void passes_begin(const struct passes *passes, struct words *command)
{
	look_begin(command, passes->look, passes->home);
	look_user(command, passes->options);
	words_add_all(command, passes->dependencies);
	look_end(command, passes->look, passes->options);
}

/* Returns the preprocessed source if its assembly says what only the DPA's compiler understands, or
 * NULL: then the source itself is better, because the compiler's messages name its macros. */
static const char *passes_source(const struct passes *passes, const struct steps *steps)
{
	const char *text = text_of("%s.i", passes->module);
	struct words command = {0};

	passes_begin(passes, &command);
	/* The other pass warns. */
	words_split(&command, "-w -E -x c");
	words_add(&command, passes->source);
	words_add(&command, "-o");
	words_add(&command, text);
	steps_run(steps, &command);
	steps_say(steps, "rewrites %s", text);
	return !steps->dry && constraints_rewrite(text) ? text : NULL;
}

/* Reads the source, and leaves the module as it is before any optimization: there a division is
 * still a division, whatever the optimizer would conclude from it. */
static void passes_first(const struct passes *passes, const struct steps *steps)
{
	const char *text = passes_source(passes, steps);
	struct words command = {0};

	if (text) {
		look_begin(&command, passes->look, passes->home);
		look_user_code(&command, passes->options);
		look_end(&command, passes->look, passes->options);
	} else {
		passes_begin(passes, &command);
	}
	words_split(&command, "-Xclang -disable-llvm-passes -S -emit-llvm -x");
	words_add(&command, text ? "cpp-output" : "c");
	words_add(&command, text ? text : passes->source);
	words_add(&command, "-o");
	words_add(&command, passes->module);
	steps_run(steps, &command);
}

/* Optimizes, and makes the object. */
static void passes_second(const struct passes *passes, const struct steps *steps)
{
	struct words command = {0};

	look_compiler_begin(&command);
	look_user_code(&command, passes->options);
	look_end(&command, passes->look, passes->options);
	words_add(&command, passes->kind);
	words_split(&command, "-x ir");
	words_add(&command, passes->module);
	words_add(&command, "-o");
	words_add(&command, passes->object);
	steps_run(steps, &command);
}

void passes_run(const struct passes *passes, const struct steps *steps)
{
	passes_first(passes, steps);
	steps_say(steps, "rewrites %s", passes->module);
	if (!steps->dry)
		rewrite_module(passes->module);
	report_check();
	passes_second(passes, steps);
}
