// SPDX-License-Identifier: BSD-2-Clause
/* The interface of a device object: the functions that the host can name, and what they take. */
#ifndef SOFTHCA_DPACC_INTERFACE_H
#define SOFTHCA_DPACC_INTERFACE_H

#include <stdbool.h>

#include "dpacc/types.h"
#include "dpacc/words.h"

struct function {
	char *name;
	char *unpack; /* name of the device function that takes its arguments out of the buffer */
	struct type result;
	struct type *parameters;
	size_t count;
	size_t bytes;	 /* bytes of the buffer that carries its arguments */
	bool has_unpack; /* the object already has this function */
};

struct interface {
	struct function *functions;
	size_t count;
	struct types types;
};

/* Reads a device object.  Complains, by file and line, about functions that the host cannot call
 * (report_at). */
void interface_read(struct interface *interface, const char *object);
/* Appends the names of the annotated functions that an object, image or the members of an archive
 * define. */
void interface_names(struct words *names, const char *file);
/* The names of the functions that go with a function; they are the same on every run. */
char *interface_unpack(const char *name);
char *interface_record(const char *name);

#endif
