// SPDX-License-Identifier: BSD-2-Clause
/* How a source for the device becomes an object. */
#include "dpacc/passes.h"

#include <string.h>

#include "dpacc/rewrite.h"

/* Reads the source, and leaves the module as it is before any optimization: there a division is
 * still a division, whatever the optimizer would conclude from it. */
static void passes_first(const struct passes *passes, const struct steps *steps)
{
	struct words command = {0};

	look_begin(&command, passes->look, passes->home);
	look_user(&command, passes->options);
	words_add_all(&command, passes->dependencies);
	look_end(&command, passes->look, passes->options);
	words_split(&command, "-Xclang -disable-llvm-passes -S -emit-llvm -x c");
	words_add(&command, passes->source);
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
