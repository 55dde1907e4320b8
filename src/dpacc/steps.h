// SPDX-License-Identifier: BSD-2-Clause
/* The steps of a run: commands that are executed, files that are written, and where they lie. */
#ifndef SOFTHCA_DPACC_STEPS_H
#define SOFTHCA_DPACC_STEPS_H

#include <stdbool.h>
#include <stdio.h>

#include "dpacc/words.h"

struct steps {
	const char *directory; /* of the intermediate files */
	bool verbose, dry;
};

/* A directory for this run alone, which goes with it, or the one that is to be kept. */
void steps_begin(struct steps *steps, const char *keep, bool verbose, bool dry);
/* The path of an intermediate file. */
char *steps_path(const struct steps *steps, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Executes a command; the program ends with its status if that is not 0. */
void steps_run(const struct steps *steps, const struct words *command);
/* Says what dpacc does by itself, as steps_run shows a command. */
void steps_say(const struct steps *steps, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A file to be written, NULL if nothing is to be created; steps_close ends the program if writing
 * failed. */
FILE *steps_open(const struct steps *steps, const char *path);
void steps_close(FILE *file, const char *path);
/* Copies a file to where it was asked for.  It appears whole or not at all. */
void steps_copy(const struct steps *steps, const char *from, const char *to);
/* Makes an archive of objects.  It appears whole or not at all, also if others make it too. */
void steps_archive(const struct steps *steps, const char *archive, const struct words *objects);

#endif
