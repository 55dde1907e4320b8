// SPDX-License-Identifier: BSD-2-Clause
/* dpa-ar, dpa-nm and their like: LLVM's tools that come with the device's compiler, or binutils' if
 * it has none.  Device code is compiled for this machine, so both know it; the names exist for
 * build scripts. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "dpacc/look.h"
#include "dpacc/words.h"

/* Returns where the compiler has the tool: a path, or the bare name if it has none. */
static const char *tool_path(const char *name)
{
	const char *path = look_compiler_answer(text_of("-print-prog-name=%s", name));

	return path[0] ? path : name;
}

/* Drops the target, which says nothing here; LLVM's tools would look for its processor. */
static bool option_is_target(const char *word)
{
	return text_begins(word, "-mcpu=nv-dpa") || text_begins(word, "--mcpu=nv-dpa");
}

int main(int argc, char **argv)
{
	struct words command = {0};

	report_name = "dpa-" TOOL;
	words_add(&command, tool_path("llvm-" TOOL));
	for (int i = 1; i < argc; i++)
		if (!option_is_target(argv[i]))
			words_add(&command, argv[i]);
	execvp(command.words[0], command.words);
	if (errno == ENOENT)
		execvp(TOOL, command.words);
	give_up("neither llvm-" TOOL " nor " TOOL ": %s", strerror(errno));
}
