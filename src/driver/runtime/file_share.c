// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/file_share.h"

#include <stdlib.h>
#include <unistd.h>

#include "driver/runtime/process.h"

struct file_share {
	struct share share;
	struct file_share *next;
	uint64_t id;
	struct segment_ref segment;
	pid_t owner; /* the process that opened it to peers */
};

static struct file_share *files;
static uint32_t file_refusals;

static struct file_share *file_share_find(struct expose *e, const struct shared_range *r,
					  uint64_t bytes)
{
	for (struct file_share *f = files; f; f = f->next) {
		struct segment_ref same;

		if (f->id != r->id || f->owner != getpid() ||
		    !segment_table_hold(&e->segments, r->id, r->offset + bytes, &same))
			continue;
		segment_table_drop(&e->segments, same);
		if (same.generation == f->segment.generation)
			return f;
	}
	return NULL;
}

static struct file_share *file_share_add(struct expose *e, const struct shared_range *r,
					 uint64_t bytes)
{
	struct file_share *f;
	uint64_t size;
	struct hidden file;

	if (file_refusals >= SHARE_MAX_REFUSALS)
		return NULL;
	file = shared_file_open(r, &size);
	f = file.fd < 0 || r->offset + bytes > size ? NULL : calloc(1, sizeof(*f));
	if (!f) {
		hidden_close(&file);
		file_refusals++;
		return NULL;
	}
	*f = (struct file_share){.id = r->id, .owner = getpid(), .next = files};
	if (segment_table_add(&e->segments, file, size, &f->segment) < 0) {
		free(f);
		file_refusals++;
		return NULL;
	}
	files = f;
	return f;
}

struct share *file_share_begin(struct expose *e, const struct shared_range *r, uint64_t bytes)
{
	struct file_share *f = file_share_find(e, r, bytes);

	if (!f)
		f = file_share_add(e, r, bytes);
	return f ? &f->share : NULL;
}

void file_share_end(struct share *s)
{
	struct file_share *f = container_of(s, struct file_share, share), **at = &files;
	struct process *p = process_current();

	if (p && p->nhcas && f->owner == getpid()) {
		segment_table_drop(&wire_expose(p->hcas[0].wire)->segments, f->segment);
		wire_process_files_ended(p->wire_process);
	}
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	free(f);
}

struct segment_ref file_share_segment(struct share *s)
{
	return container_of(s, struct file_share, share)->segment;
}
