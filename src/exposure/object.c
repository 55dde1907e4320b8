// SPDX-License-Identifier: BSD-2-Clause
/* The owner's side; expose_view.c and the tool have the side of those who look. */
#include "exposure/object.h"

#include <stdio.h>

#include "exposure/expose.h"

void expose_object_form(struct expose *e, enum object_kind kind, const struct object_form *form)
{
	if (e->mem)
		e->mem->forms[kind] = *form;
}

/* Each serial number is used once.  A row that is being filled has this one, which means
 * nothing. */
#define SERIAL_FILLING UINT64_MAX

struct object_row *expose_object(struct expose *e, const struct object_about *about)
{
	uint64_t serial;

	if (!e->mem)
		return NULL;
	serial = atomic_fetch_add(&e->objects_made, 1) + 1;
	/* Rows are taken in turn, so the first one that we look at is usually free. */
	for (uint32_t i = 0; i < OBJECT_ROWS; i++) {
		struct object_row *row = &e->mem->objects[(serial + i) % OBJECT_ROWS];
		uint64_t none = 0;

		if (atomic_load_explicit(&row->serial, memory_order_relaxed) ||
		    !atomic_compare_exchange_strong(&row->serial, &none, SERIAL_FILLING))
			continue;
		row->about = *about;
		atomic_store_explicit(&row->failures, 0, memory_order_relaxed);
		row->why[0] = '\0';
		atomic_store_explicit(&row->serial, serial, memory_order_release);
		return row;
	}
	return NULL;
}

void expose_object_end(struct object_row *row)
{
	if (row)
		atomic_store(&row->serial, 0);
}

void expose_object_failed(struct object_row *row, const char *why)
{
	if (!row)
		return;
	snprintf(row->why, sizeof(row->why), "%s", why);
	atomic_fetch_add(&row->failures, 1);
}
