/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the part of TOML (toml.io, version 1.0) that files of faults need: comments, tables, arrays of
 * tables, and on one line each a bare key with a string, a number, a boolean or an array of these.  What
 * it reads is what other readers of TOML read; other constructs are refused by name.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum toml_type { TOML_STRING, TOML_NUMBER, TOML_BOOLEAN, TOML_ARRAY };

struct toml_value {
	enum toml_type type;
	const char *text; /* of a string; valid during the call */
	double number;
};

/* False: the reader has said what is wrong (toml_error), and reading ends. */
struct toml_reader {
	/* [name], or [[name]] if it is an array. */
	bool (*table)(struct toml_reader *r, const char *name, bool array);
	bool (*value)(struct toml_reader *r, const char *key, const struct toml_value *v);
	const char *path;
	unsigned line; /* the one that is being read, from 1 */
};

/* Reads the file at r->path.  False after one error line with file and line. */
bool toml_read(struct toml_reader *r);
/* Prints an error line about the line that is being read; returns false. */
bool toml_error(const struct toml_reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
