/* SPDX-License-Identifier: BSD-2-Clause */
/* How a source for the device becomes an object. */
#pragma once

#include "dpacc/look.h"
#include "dpacc/steps.h"
#include "dpacc/words.h"

struct passes {
	const struct look *look;
	const struct home *home;
	const struct words *options;	  /* the user's */
	const struct words *dependencies; /* further ones, for the file of dependencies */
	const char *source, *module, *object;
	const char *kind; /* "-c", or "-S" for assembly in the place of an object */
};

/* Runs the compiler up to its optimizer, rewrites what it has made (module), and runs the rest. */
void passes_run(const struct passes *passes, const struct steps *steps);
