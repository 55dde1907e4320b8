// SPDX-License-Identifier: BSD-2-Clause
/* The steps of a run: commands that it executes, files that it writes, and where they lie. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "dpacc/words.h"

struct steps {
	const char *directory; /* where the intermediate files lie */
	bool verbose, dry;
};

/* Makes a directory that lasts for this run, or uses the one that is to be kept. */
void steps_begin(struct steps *steps, const char *keep, bool verbose, bool dry);
/* The path of an intermediate file. */
char *steps_path(const struct steps *steps, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Executes a command; if its status is not 0, the program ends with that status. */
void steps_run(const struct steps *steps, const struct words *command);
/* Prints what dpacc itself does, as steps_run prints a command. */
void steps_say(const struct steps *steps, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Opens a file for writing, or returns NULL if nothing is to be created; steps_close ends the
 * program if writing failed. */
FILE *steps_open(const struct steps *steps, const char *path);
void steps_close(FILE *file, const char *path);
/* Copies a file to where the user wants it.  It appears whole or not at all. */
void steps_copy(const struct steps *steps, const char *from, const char *to);
/* Makes an archive of objects.  It appears whole or not at all, even if others make it too. */
void steps_archive(const struct steps *steps, const char *archive, const struct words *objects);
