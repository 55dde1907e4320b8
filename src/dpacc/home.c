// SPDX-License-Identifier: BSD-2-Clause
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpacc/home.h"
#include "dpacc/report.h"
#include "dpacc/words.h"

/* A header that lies in each place that is the right one. */
#define WITNESS "libflexio-dev/flexio_dev.h"

static char *own_directory(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length < 0)
		give_up("/proc/self/exe: cannot be read");
	path[length] = 0;
	*strrchr(path, '/') = 0;
	return text_of("%s", path);
}

/* Reads the lines of a build tree's file: "include=DIRECTORY" and "library=DIRECTORY". */
static bool home_read(struct home *home, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[PATH_MAX + 16];

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (text_begins(line, "include="))
			home->include = text_of("%s", strchr(line, '=') + 1);
		else if (text_begins(line, "library="))
			home->library = text_of("%s", strchr(line, '=') + 1);
	}
	fclose(file);
	return home->include;
}

static bool home_try(struct home *home, char *include, char *library)
{
	char *witness = text_of("%s/" WITNESS, include);
	bool there = !access(witness, R_OK);

	free(witness);
	home->include = include;
	home->library = library;
	return there;
}

void home_find(struct home *home)
{
	char *own = own_directory();

	*home = (struct home){0};
	if (home_read(home, text_of("%s/dpacc.dirs", own)) ||
	    home_try(home, text_of("%s/../../flexio/include", own),
		     text_of("%s/../../flexio/lib", own)) ||
	    home_try(home, text_of("%s/../include", own), text_of("%s/../lib/softhca/dpa", own)))
		return;
	give_up("no %s in %s/../include: the headers of the device are not installed with this "
		"tool",
		WITNESS, own);
}

char *home_library(const struct home *home, bool checked, const char *name)
{
	const char *mode = checked ? "checked" : "unchecked";
	char *path = text_of("%s/%s/%s", home->library ? home->library : "", mode, name);

	if (access(path, R_OK))
		give_up("%s is not there: the device library is not installed with this tool",
			path);
	return path;
}
