/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the compilers share: where the headers and libraries are, how device code is compiled, the
 * help text.
 */
#pragma once

#include <stdbool.h>

#include "dpacc/words.h"

/* ---- home ---- */

struct home {
	char *include; /* contains libflexio, libflexio-dev and libflexio-libc */
	char *library; /* contains checked/ and unchecked/; NULL: it is not there */
};

/* Looks, from the directory DIR of the running executable on, at
 *   DIR/dpacc.dirs                            a build tree: the file's lines say it
 *   DIR/../../flexio/{include,lib}            /opt/mellanox/doca/tools/dpacc
 *   DIR/../lib/softhca/dpa{/include,}         an installation: include has links to these headers, and none of the
 *                                             host's, which the device must not see
 * Ends the program with a message if the headers are nowhere. */
void home_find(struct home *home);
/* Returns the device library of that mode, or ends the program with a message. */
char *home_library(const struct home *home, bool checked, const char *name);

/* ---- look ---- */

/* The device's look: the options with which clang compiles code for the DPA. */

/* Sections for annotated functions, by which an object shows which functions are annotated. */
#define SECTION_RPC    ".dpa_rpc"
#define SECTION_GLOBAL ".dpa_global"

/* How a device program is compiled. */
struct look {
	const char *target; /* what programs test __NV_DPA for: a key of look_target */
	bool checked;	    /* whether each load and store is checked */
};

/* Appends the compiler. */
void look_compiler_begin(struct words *command);
/* Appends the compiler and its options that come before a user's own. */
void look_begin(struct words *command, const struct look *look, const struct home *home);
/* Appends a user's options, except those that only the real device's compiler understands. */
void look_user(struct words *command, const struct words *options);
/* The same for a compiler that reads no source any more: without files of dependencies. */
void look_user_code(struct words *command, const struct words *options);
/* Whether the option's value is the next word, whatever that looks like. */
bool look_has_value(const char *option);
/* Appends the options that hold whatever the user's options are, but -fsanitize=thread. */
void look_end(struct words *command, const struct look *look, const struct words *options);
/* Returns the name of a target of -mcpu as above, or NULL; of a list the first counts. */
const char *look_target(const char *cpus);

/* Returns the first line that the device's compiler prints if it is run with this option; "" if it
 * prints none. */
char *look_compiler_answer(const char *option);

/* ---- help ---- */

/* Prints the version that scripts compare, and ours. */
void help_version(const char *name);
void help_dpacc(void);
