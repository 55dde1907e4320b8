// SPDX-License-Identifier: BSD-2-Clause
/* Types of parameters: turns the debug information of the device's object into C that both sides
 * compile. */
#ifndef SOFTHCA_DPACC_TYPES_H
#define SOFTHCA_DPACC_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <elfutils/libdw.h>

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

#endif
