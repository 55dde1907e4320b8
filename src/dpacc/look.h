// SPDX-License-Identifier: BSD-2-Clause
/* The device's look: the options with which clang compiles code for the DPA. */
#ifndef SOFTHCA_DPACC_LOOK_H
#define SOFTHCA_DPACC_LOOK_H

#include <stdbool.h>

#include "dpacc/home.h"
#include "dpacc/words.h"

/* Sections that annotated functions lie in; this is how an object shows which they are. */
#define SECTION_RPC    ".dpa_rpc"
#define SECTION_GLOBAL ".dpa_global"

/* What a device program is compiled as. */
struct look {
	const char *target; /* what the programs test __NV_DPA for: a key of look_target */
	bool checked;	    /* each load and store is checked */
};

/* Appends the compiler and its options that come before a user's own. */
void look_begin(struct words *command, const struct look *look, const struct home *home);
/* Appends a user's options but those that make sense for the real device's compiler only. */
void look_user(struct words *command, const struct words *options);
/* Appends the options that hold whatever the user's are. */
void look_end(struct words *command, const struct look *look);
/* The name of a target of -mcpu as above, or NULL: the first of a list of them counts. */
const char *look_target(const char *cpus);

#endif
