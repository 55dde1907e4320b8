// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs/core/numbered.h. */
#include "driver/uverbs/core/numbered.h"

#include <errno.h>
#include <stdlib.h>

/* An object without memory for its number is not published. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

/* Those that share a number, which are no more than there are kinds. */
struct uobj_alike {
	uint32_t number;
	struct uobj *first;
	UT_hash_handle hh;
};

static struct uobj_alike *alike_find(struct uobj_table *t, uint32_t number)
{
	struct uobj_alike *a;

	HASH_FIND(hh, t->numbered, &number, sizeof(number), a);
	return a;
}

static struct uobj_alike *alike_make(struct uobj_table *t, uint32_t number)
{
	struct uobj_alike *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->number = number;
	HASH_ADD(hh, t->numbered, number, sizeof(number), a);
	if (a->hh.tbl)
		return a;
	free(a);
	return NULL;
}

int uobj_number_add(struct uobj_table *t, struct uobj *obj)
{
	struct uobj_alike *a;
	uint32_t number;

	if (!obj->class->number)
		return 0;
	number = obj->class->number(obj);
	a = alike_find(t, number);
	if (!a)
		a = alike_make(t, number);
	if (!a)
		return -ENOMEM;
	DL_APPEND2(a->first, obj, alike_prev, alike_next);
	return 0;
}

void uobj_number_remove(struct uobj_table *t, struct uobj *obj)
{
	struct uobj_alike *a;

	if (!obj->class->number)
		return;
	a = alike_find(t, obj->class->number(obj));
	DL_DELETE2(a->first, obj, alike_prev, alike_next);
	if (a->first)
		return;
	HASH_DEL(t->numbered, a);
	free(a);
}

struct uobj *uobj_numbered(struct uobj_table *t, uint32_t number)
{
	const struct uobj_alike *a = alike_find(t, number);

	return a ? a->first : NULL;
}
