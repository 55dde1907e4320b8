// SPDX-License-Identifier: BSD-2-Clause
/* See outbox.h. */
#include "dpa/outbox.h"

#include <errno.h>
#include <stdlib.h>

#include "dpa/process.h"

struct uar_row {
	struct uar_row *next;
	struct dpa_uar uar;
};

static struct {
	struct spin lock;
	struct uar_row *first;
} uars;

int dpa_uar_add(const struct dpa_uar *uar)
{
	struct uar_row *row = malloc(sizeof(*row));

	if (!row)
		return -ENOMEM;
	row->uar = *uar;
	spin_lock(&uars.lock);
	row->next = uars.first;
	uars.first = row;
	spin_unlock(&uars.lock);
	return 0;
}

void dpa_uar_remove(uint32_t number)
{
	struct uar_row **at = &uars.first, *row;

	spin_lock(&uars.lock);
	while (*at && (*at)->uar.number != number)
		at = &(*at)->next;
	row = *at;
	if (row)
		*at = row->next;
	spin_unlock(&uars.lock);
	free(row);
}

bool dpa_uar_find(uint32_t number, struct dpa_uar *out)
{
	const struct uar_row *row;

	spin_lock(&uars.lock);
	for (row = uars.first; row && row->uar.number != number; row = row->next)
		;
	if (row)
		*out = row->uar;
	spin_unlock(&uars.lock);
	return row;
}

int dpa_outbox_add(struct dpa_process *p, uint32_t uar, bool initial)
{
	struct dpa_outboxes *o = &p->outboxes;
	struct dpa_uar found;
	uint32_t id = 1;

	if (!dpa_uar_find(uar, &found))
		return -EINVAL;
	spin_lock(&o->lock);
	/* 0 stands for the outbox of a program that has made none. */
	while (id < DPA_OUTBOXES && o->uar[id].bells)
		id++;
	if (id < DPA_OUTBOXES)
		o->uar[id] = found;
	if (id < DPA_OUTBOXES && initial)
		o->initial = found;
	spin_unlock(&o->lock);
	return id < DPA_OUTBOXES ? (int)id : -ENOSPC;
}

void dpa_outbox_allow_congestion(struct dpa_process *p, uint32_t id, bool initial)
{
	struct dpa_outboxes *o = &p->outboxes;

	spin_lock(&o->lock);
	o->uar[id].congestion = true;
	if (initial)
		o->initial.congestion = true;
	spin_unlock(&o->lock);
}

void dpa_outbox_remove(struct dpa_process *p, uint32_t id)
{
	struct dpa_outboxes *o = &p->outboxes;

	spin_lock(&o->lock);
	o->uar[id].bells = NULL;
	spin_unlock(&o->lock);
}

struct dpa_uar dpa_outbox_initial(struct dpa_process *p)
{
	struct dpa_uar uar;

	spin_lock(&p->outboxes.lock);
	uar = p->outboxes.initial;
	spin_unlock(&p->outboxes.lock);
	return uar;
}

bool dpa_outbox_find(struct dpa_process *p, uint32_t id, struct dpa_uar *out)
{
	struct dpa_outboxes *o = &p->outboxes;

	if (id >= DPA_OUTBOXES)
		return false;
	spin_lock(&o->lock);
	*out = o->uar[id];
	spin_unlock(&o->lock);
	return out->bells;
}
