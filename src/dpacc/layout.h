// SPDX-License-Identifier: BSD-2-Clause
/* Structures and unions as C, so that their members lie where the program's do. */
#ifndef SOFTHCA_DPACC_LAYOUT_H
#define SOFTHCA_DPACC_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

struct layout_member {
	char *text;	  /* its type; of an array, the type of the elements */
	char *dimensions; /* "[3][4]", or "" */
	size_t bytes;	  /* bytes of all of it */
	size_t align;	  /* bytes that its type is aligned to by itself */
	size_t wanted;	  /* alignment that the program says; 0: none */
	size_t at;	  /* its place, in bits from the beginning */
	size_t bits;	  /* bits of a bit field; 0: it is not one */
};

struct layout {
	const char *name; /* with struct or union in front */
	bool is_union;
	struct layout_member *members;
	size_t count;
	size_t bytes;
	size_t wanted; /* alignment that the program says; 0: none */
};

/* Returns the definition, with assertions that it is right; *align is what the type then has.  NULL
 * if C has no such layout. */
char *layout_text(const struct layout *layout, size_t *align);

#endif
