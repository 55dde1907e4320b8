// SPDX-License-Identifier: BSD-2-Clause
/* Finds the headers and libraries of the device: beside the tool, wherever that was put. */
#ifndef SOFTHCA_DPACC_HOME_H
#define SOFTHCA_DPACC_HOME_H

#include <stdbool.h>

struct home {
	char *include; /* contains libflexio, libflexio-dev and libflexio-libc */
	char *library; /* contains checked/ and unchecked/; NULL: it is not there */
};

/* Looks, from the directory DIR of the running executable on, at
 *   DIR/dpacc.dirs                            a build tree: the file's lines say it
 *   DIR/../../flexio/{include,lib}            /opt/mellanox/doca/tools/dpacc
 *   DIR/../include, DIR/../lib/softhca/dpa    an installation
 * Ends the program with a message if the headers are nowhere. */
void home_find(struct home *home);
/* Returns the device library of that mode, or ends the program with a message. */
char *home_library(const struct home *home, bool checked, const char *name);

#endif
