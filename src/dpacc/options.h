// SPDX-License-Identifier: BSD-2-Clause
/* The command line of dpacc. */
#pragma once

#include <stdbool.h>

#include "dpacc/look.h"
#include "dpacc/words.h"

struct options {
	struct words sources;	  /* C files */
	struct words inputs;	  /* other files: objects and archives for the device linker */
	struct words device;	  /* options of the device compiler */
	struct words device_link; /* options of the device linker: -l, -L and others */
	struct words host;	  /* options of the host compiler */
	const char *host_compiler;
	const char *output;
	const char *app;
	const char *keep; /* where intermediate files stay; NULL: they go */
	struct look look;
	bool compile;	/* --compile: makes an object for each source, for a later run */
	bool libraries; /* --gen-libs: a device library and its host part, no program */
	bool shared;	/* --shared: a shared object in the place of the archive */
	bool verbose;	/* prints commands */
	bool dry;	/* prints commands and does not execute them */
	bool strip;	/* -g0: no debug information in the image */
};

/* Reads the command line.  Prints and ends the program for --help, --version and mistakes. */
void options_read(struct options *options, int argc, char **argv);
