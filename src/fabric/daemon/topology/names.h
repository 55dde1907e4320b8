/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds things by name: an index over an array that its owner keeps.  Names are added in the order
 * of the array and never leave.  Each program that starts makes a search, in tables of tens of
 * thousands of names, so the index is a hash table.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"

struct names {
	uint32_t *place; /* open addressing: index in the array plus one */
	uint32_t size;	 /* power of two, 0 while empty */
	uint32_t count;
};

/* The name of element 'index' of the owner's array. */
typedef const char *name_of(const void *array, uint32_t index);

/* Adds the name as element n->count.  0, -EEXIST if it is there already, or -ENOMEM. */
int names_add(struct names *n, const void *array, name_of *of, const char *name) must_check;
/* Returns the name's index, or -ENOENT. */
int64_t names_find(const struct names *n, const void *array, name_of *of,
		   const char *name) must_check;
void names_free(struct names *n);
