// SPDX-License-Identifier: BSD-2-Clause
/* The way from sources to the archive. */
#ifndef SOFTHCA_DPACC_STAGES_H
#define SOFTHCA_DPACC_STAGES_H

#include "dpacc/options.h"

/* Makes a program's archive, or the two of a library. */
void stages_run(const struct options *options);

#endif
