/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface of a device object: the functions that the host can name, and what they take. */
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

#include "dpacc/words.h"

/* ---- types of parameters: debug information as C that both sides compile ---- */

/* Definitions of the structures and unions that parameters are made of, in an order that
 * compiles. */
struct types {
	struct {
		Dwarf_Off at;
		size_t align;
	} * known;
	size_t count;
	char *definitions;
};

enum type_kind {
	TYPE_VOID,
	TYPE_INTEGER, /* also pointers and enumerations */
	TYPE_FLOAT,
	TYPE_AGGREGATE, /* a structure or union, by value */
	TYPE_UNKNOWN,	/* calls cannot pass it */
};

struct type {
	enum type_kind kind;
	/* Its name in C: a type of the same size and place in calls, not of the same name. */
	char *text;
	char *promoted; /* how va_arg fetches a variable argument of it */
	size_t bytes;
	size_t align; /* its alignment as a member of a structure */
};

/* Returns the bytes of an argument in the buffer of a call: each begins at a multiple of 8. */
size_t type_slot(const struct type *type);
/* Returns the type of an entry (a parameter, a function). */
struct type type_of(struct types *types, Dwarf_Die *entry);

/* ---- the interface ---- */

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
