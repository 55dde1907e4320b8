// SPDX-License-Identifier: BSD-2-Clause
/* The device's look: the options with which clang compiles code for the DPA. */
#ifndef SOFTHCA_DPACC_LOOK_H
#define SOFTHCA_DPACC_LOOK_H

#include <stdbool.h>

#include "dpacc/home.h"
#include "dpacc/words.h"

/* Sections for annotated functions, by which an object shows which functions are annotated. */
#define SECTION_RPC    ".dpa_rpc"
#define SECTION_GLOBAL ".dpa_global"

/* How a device program is compiled. */
struct look {
	const char *target; /* what programs test __NV_DPA for: a key of look_target */
	bool checked;	    /* whether each load and store is checked */
};

/* Appends the compiler and its options that come before a user's own. */
void look_begin(struct words *command, const struct look *look, const struct home *home);
/* Appends a user's options, except those that only the real device's compiler understands. */
void look_user(struct words *command, const struct words *options);
/* Appends the options that hold whatever the user's options are. */
void look_end(struct words *command, const struct look *look);
/* Returns the name of a target of -mcpu as above, or NULL; of a list the first counts. */
const char *look_target(const char *cpus);

/* Returns the first line that the device's compiler prints if it is run with this option; "" if it
 * prints none. */
char *look_compiler_answer(const char *option);

#endif
