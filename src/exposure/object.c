// SPDX-License-Identifier: BSD-2-Clause
/* The owner's side; expose.c and the tool have the side of those who look. */
#include "exposure/object.h"

#include <stdio.h>

#include "exposure/expose.h"

void expose_object_form(struct expose *e, enum object_kind kind, const struct object_form *form)
{
	if (e->mem)
		e->mem->forms[kind] = *form;
}

static struct object_row *take_row(struct expose *e)
{
	struct object_row *row = NULL;

	spin_lock(&e->row_lock);
	if (e->rows_back)
		row = &e->mem->objects[e->row_stack[--e->rows_back]];
	else if (e->rows_begun < OBJECT_ROWS)
		row = &e->mem->objects[e->rows_begun++];
	spin_unlock(&e->row_lock);
	return row;
}

struct object_row *expose_object(struct expose *e, const struct object_about *about)
{
	struct object_row *row = e->mem ? take_row(e) : NULL;

	if (!row)
		return NULL;
	row->about = *about;
	atomic_store_explicit(&row->failures, 0, memory_order_relaxed);
	row->why[0] = '\0';
	/* Each serial number is used once. */
	atomic_store_explicit(&row->serial, atomic_fetch_add(&e->objects_made, 1) + 1,
			      memory_order_release);
	return row;
}

void expose_object_end(struct expose *e, struct object_row *row)
{
	if (!row)
		return;
	atomic_store(&row->serial, 0);
	spin_lock(&e->row_lock);
	e->row_stack[e->rows_back++] = (uint32_t)(row - e->mem->objects);
	spin_unlock(&e->row_lock);
}

void expose_object_failed(struct object_row *row, const char *why)
{
	if (!row)
		return;
	snprintf(row->why, sizeof(row->why), "%s", why);
	atomic_fetch_add(&row->failures, 1);
}
