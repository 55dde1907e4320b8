// SPDX-License-Identifier: BSD-2-Clause
/* Messages that are too long for the stream wait here until a reader with enough room comes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory_file.h"
#include "fabric/daemon/umad/file.h"

static struct umad_long **long_find(const struct umad_file *f, uint32_t id)
{
	struct umad_long **at = (struct umad_long **)(uintptr_t)&f->longs;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static void longs_tell(const struct umad_file *f)
{
	atomic_store_explicit(&f->page->longs, f->nlongs, memory_order_release);
}

static void long_free(struct umad_file *f, struct umad_long **at)
{
	struct umad_long *l = *at;

	*at = l->next;
	umad_waiting_add(f, -(int64_t)l->length);
	f->nlongs--;
	longs_tell(f);
	free(l->mad);
	free(l);
}

/* Takes the message as it is, or a copy of it. */
static bool long_fill(struct umad_long *l, struct mad_message *m)
{
	l->mad = m->owned ? m->owned : malloc(m->length);
	if (!l->mad)
		return false;
	if (!m->owned)
		memcpy(l->mad, m->data, m->length);
	m->owned = NULL;
	return true;
}

bool umad_long_keep(struct umad_file *f, const uint8_t *header, struct mad_message *m,
		    struct umad_marker *marker)
{
	struct umad_long *l = calloc(1, sizeof(*l));

	if (!l)
		return false;
	l->header_bytes = f->header_bytes;
	memcpy(l->header, header, f->header_bytes);
	if (!long_fill(l, m)) {
		free(l);
		return false;
	}
	/* 0 and UMAD_RETURNED are no ids. */
	if (++f->next_long == UMAD_RETURNED)
		f->next_long = 1;
	l->next = f->longs;
	l->id = f->next_long;
	l->length = f->header_bytes + m->length;
	f->longs = l;
	umad_waiting_add(f, l->length);
	f->nlongs++;
	longs_tell(f);
	*marker = (struct umad_marker){UMAD_MAGIC, l->id, l->length};
	return true;
}

bool umad_long_is_kept(const struct umad_file *f, uint32_t id)
{
	return *long_find(f, id) != NULL;
}

void umad_long_drop(struct umad_file *f, uint32_t id)
{
	struct umad_long **at = long_find(f, id);

	if (*at)
		long_free(f, at);
}

void umad_long_forget(struct umad_file *f)
{
	while (f->longs)
		long_free(f, &f->longs);
}

int umad_file_fetch(struct umad_file *f, const struct msg_umad_fetch *r,
		    struct msg_umad_fetch_reply *reply, int *fd)
{
	struct umad_long **at = long_find(f, r->id);
	struct umad_long *l = *at;
	uint32_t bytes;
	int ret;

	if (!l)
		return -ENOENT;
	*reply = (struct msg_umad_fetch_reply){.length = l->length, .kept = l->length > r->room};
	/* A reader whose buffer is too small learns from the beginning how much it needs. */
	bytes = reply->kept ? MAD_BYTES : l->length - l->header_bytes;
	ret = memory_file_pieces("softhca-umad", l->header, l->header_bytes, l->mad, bytes);
	if (ret < 0)
		return ret;
	*fd = ret;
	if (!reply->kept)
		long_free(f, at);
	return 0;
}
