// SPDX-License-Identifier: BSD-2-Clause
/* Messages that are too long for the stream wait here until a reader with enough room comes. */
#include <errno.h>
#include <fcntl.h>
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
	rmpp_source_put(l->source);
	free(l->owned);
	free(l);
}

/* Takes the message as it is, or a copy of it. */
static bool long_fill(struct umad_long *l, struct mad_message *m)
{
	const struct rmpp_message *lent = m->lent ? &m->lent->message : NULL;

	if (lent) {
		memcpy(l->head + l->nhead, m->data, lent->data_at);
		l->nhead += lent->data_at;
		l->rest = lent->bytes + lent->data_at;
		l->source = rmpp_source_get(m->lent);
		return true;
	}
	l->owned = m->owned ? m->owned : malloc(m->length);
	if (!l->owned)
		return false;
	if (!m->owned)
		memcpy(l->owned, m->data, m->length);
	m->owned = NULL;
	l->rest = l->owned;
	return true;
}

bool umad_long_keep(struct umad_file *f, const uint8_t *header, struct mad_message *m,
		    struct umad_marker *marker)
{
	struct umad_long *l = calloc(1, sizeof(*l));

	if (!l)
		return false;
	l->nhead = f->header_bytes;
	memcpy(l->head, header, f->header_bytes);
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

/* Returns a descriptor, or a negative errno.  It is the file that the sender has made, if the
 * reader gets the beginning with the reply; else a file of the daemon's.  A reader whose buffer is
 * too small learns from the beginning how much it needs. */
static int long_file(const struct umad_file *f, const struct umad_long *l,
		     struct msg_umad_fetch_reply *reply)
{
	const struct rmpp_source *s = l->source;
	uint32_t bytes = reply->kept ? f->header_bytes + MAD_BYTES : l->length;
	int file = -1;

	if (s && s->file >= 0 && !reply->kept)
		file = fcntl(s->file, F_DUPFD_CLOEXEC, 0);
	if (file < 0)
		return memory_file_pieces("softhca-umad", l->head, l->nhead, l->rest,
					  bytes - l->nhead);
	reply->nhead = l->nhead;
	reply->at = s->file_at + s->message.data_at;
	memcpy(reply->head, l->head, l->nhead);
	return file;
}

int umad_file_fetch(struct umad_file *f, const struct msg_umad_fetch *r,
		    struct msg_umad_fetch_reply *reply, int *fd)
{
	struct umad_long **at = long_find(f, r->id);
	struct umad_long *l = *at;
	int ret;

	if (!l)
		return -ENOENT;
	*reply = (struct msg_umad_fetch_reply){.length = l->length, .kept = l->length > r->room};
	ret = long_file(f, l, reply);
	if (ret < 0)
		return ret;
	*fd = ret;
	if (!reply->kept)
		long_free(f, at);
	return 0;
}
