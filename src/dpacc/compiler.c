// SPDX-License-Identifier: BSD-2-Clause
/* dpa-clang: the device's compiler alone, which is clang with the options of the device's look. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "dpacc/look.h"
#include "dpacc/words.h"

int main(int argc, char **argv)
{
	struct look look = {.target = "__NV_DPA_BF3", .checked = true};
	struct words options = {0}, command = {0};
	struct home home;

	report_name = "dpa-clang";
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "--version")) {
			help_version("dpa-clang");
			return 0;
		}
		if (!strcmp(word, "--unchecked"))
			look.checked = false;
		else if (!strcmp(word, "--checked"))
			look.checked = true;
		else if (text_begins(word, "-mcpu=") && look_target(strchr(word, '=') + 1))
			look.target = look_target(strchr(word, '=') + 1);
		else
			words_add(&options, word);
	}
	home_find(&home);
	look_begin(&command, &look, &home);
	look_user(&command, &options);
	look_end(&command, &look);
	/* dpa-clang links no programs: dpacc does. */
	if (!words_have(&options, "-E") && !words_have(&options, "-S") &&
	    !words_have(&options, "-fsyntax-only"))
		words_add(&command, "-c");
	execvp(command.words[0], command.words);
	give_up("%s: %s", command.words[0], strerror(errno));
}
