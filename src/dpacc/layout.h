// SPDX-License-Identifier: BSD-2-Clause
/* Structures and unions as C, so that their members lie where the program's do. */
#ifndef SOFTHCA_DPACC_LAYOUT_H
#define SOFTHCA_DPACC_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

struct layout_member {
	char *text;	  /* its type, of an array the elements' */
	char *dimensions; /* "[3][4]", or "" */
	size_t bytes;	  /* all of it */
	size_t align;	  /* what its type has by itself, bytes */
	size_t wanted;	  /* what the program says instead; 0: nothing */
	size_t at;	  /* bits from the beginning */
	size_t bits;	  /* of a bit field; 0: it is none */
};

struct layout {
	const char *name; /* with struct or union in front */
	bool is_union;
	struct layout_member *members;
	size_t count;
	size_t bytes;
	size_t wanted; /* alignment that the program says; 0: nothing */
};

/* The definition, with assertions that it is right; *align is what the type has then.  NULL if
 * there is no such layout in C. */
char *layout_text(const struct layout *layout, size_t *align);

#endif
