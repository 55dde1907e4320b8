// SPDX-License-Identifier: BSD-2-Clause
/* Types of parameters: from the debug information of the device's object to C that both sides
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
	TYPE_UNKNOWN,	/* none that can be passed */
};

struct type {
	enum type_kind kind;
	/* How C names it; a type of the same size and place in calls, not of the same name. */
	char *text;
	char *promoted; /* how a variable argument of it is fetched */
	size_t bytes;
	size_t align; /* as a member of a structure */
};

/* Bytes that an argument takes in the buffer of a call: each begins at a multiple of 8. */
size_t type_slot(const struct type *type);
/* The type that an entry (a parameter, a function) has. */
struct type type_of(struct types *types, Dwarf_Die *entry);

#endif
