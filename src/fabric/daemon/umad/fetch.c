// SPDX-License-Identifier: BSD-2-Clause
/* Messages that are too long for the stream wait here until a reader comes for them with room enough. */
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
	free(l);
}

bool umad_long_keep(struct umad_file *f, const uint8_t *header, const uint8_t *data,
		    uint32_t length, struct umad_marker *marker)
{
	struct umad_long *l = malloc(sizeof(*l) + f->header_bytes + length);

	if (!l)
		return false;
	/* 0 and UMAD_RETURNED are no ids. */
	if (++f->next_long == UMAD_RETURNED)
		f->next_long = 1;
	*l = (struct umad_long){
		.next = f->longs, .id = f->next_long, .length = f->header_bytes + length};
	memcpy(l->bytes, header, f->header_bytes);
	memcpy(l->bytes + f->header_bytes, data, length);
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
	int ret;

	if (!l)
		return -ENOENT;
	*reply = (struct msg_umad_fetch_reply){.length = l->length, .kept = l->length > r->room};
	/* To one whose buffer is too small the beginning says how much is needed. */
	ret = memory_file_message("softhca-umad", l->bytes,
				  reply->kept ? f->header_bytes + MAD_BYTES : l->length);
	if (ret < 0)
		return ret;
	*fd = ret;
	if (!reply->kept)
		long_free(f, at);
	return 0;
}
