// SPDX-License-Identifier: BSD-2-Clause
#ifndef SOFTHCA_DPACC_HELP_H
#define SOFTHCA_DPACC_HELP_H

/* Prints the version that scripts compare, and ours. */
void help_version(const char *name);
void help_dpacc(void);

#endif
