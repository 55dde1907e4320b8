// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/memory/klm_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int klm_list_init(struct klm_list *l, enum mkey_list kind, uint8_t log_entry_bytes, uint32_t room)
{
	*l = (struct klm_list){.kind = kind, .log_entry_bytes = log_entry_bytes, .room = room};
	if (!room)
		return 0;
	l->entry = calloc(room, sizeof(*l->entry));
	l->end = calloc(room, sizeof(*l->end));
	if (l->entry && l->end)
		return 0;
	klm_list_release(l);
	return -ENOMEM;
}

void klm_list_release(struct klm_list *l)
{
	free(l->entry);
	free(l->end);
	l->entry = NULL;
	l->end = NULL;
}

void klm_list_clear(struct klm_list *l)
{
	l->count = l->settled = 0;
	l->bytes = 0;
}

void klm_list_put(struct klm_list *l, uint32_t at, const struct umr_klm *entry, uint32_t n)
{
	memcpy(l->entry + at, entry, n * sizeof(*entry));
	if (at + n > l->count)
		l->count = at + n;
	l->settled = min_u32(l->settled, at);
	l->bytes = 0;
}

/* The header of a strided list. */
static const struct umr_stride_header *header_of(const struct klm_list *l)
{
	return (const struct umr_stride_header *)&l->entry[0];
}

static const struct umr_stride *stride_of(const struct klm_list *l, uint32_t i)
{
	return (const struct umr_stride *)&l->entry[i];
}

static const char *settle_strided(struct klm_list *l)
{
	const struct umr_stride_header *h = header_of(l);
	uint32_t n = be16_get(h->entries);
	uint64_t sum = 0;

	if (!n || n >= l->count)
		return "a strided list of more entries than it has";
	l->end[0] = 0;
	for (uint32_t i = 1; i <= n; i++) {
		sum += be16_get(stride_of(l, i)->byte_count);
		l->end[i] = sum;
	}
	if (sum != be32_get(h->byte_count))
		return "a strided list whose cycle is not the sum of its entries";
	l->strided = true;
	l->count = n + 1;
	l->cycle = sum;
	l->bytes = sum * be32_get(h->repeat_count);
	return NULL;
}

static bool is_strided(const struct klm_list *l)
{
	return l->kind == MKEY_LIST_KLM && l->count && be32_get(l->entry[0].mkey) == UMR_STRIDED;
}

const char *klm_list_settle(struct klm_list *l)
{
	l->bytes = 0;
	l->strided = false;
	if (l->kind == MKEY_LIST_KSM) {
		l->bytes = (uint64_t)l->count << l->log_entry_bytes;
		return NULL;
	}
	if (is_strided(l)) {
		l->settled = 0;
		return settle_strided(l);
	}
	for (; l->settled < l->count; l->settled++) {
		uint64_t before = l->settled ? l->end[l->settled - 1] : 0;

		l->end[l->settled] = before + be32_get(l->entry[l->settled].byte_count);
	}
	l->bytes = l->count ? l->end[l->count - 1] : 0;
	return NULL;
}

/* The entry that contains byte off of the list or cycle, but never an entry of no bytes. */
static uint32_t entry_at(const struct klm_list *l, uint64_t off)
{
	uint32_t low = 0, high = l->count - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (l->end[middle] > off)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static uint64_t begin_of(const struct klm_list *l, uint32_t i)
{
	return i ? l->end[i - 1] : 0;
}

/* The same, but tries entry i first, because a walk along the list comes to the next one. */
static uint32_t entry_near(const struct klm_list *l, uint32_t i, uint64_t off)
{
	return i < l->count && l->end[i] > off && begin_of(l, i) <= off ? i : entry_at(l, off);
}

static struct klm_piece piece_klm(const struct klm_list *l, uint32_t i, uint64_t off)
{
	uint64_t into = off - begin_of(l, i);

	return (struct klm_piece){
		.key = be32_get(l->entry[i].mkey),
		.va = be64_get(l->entry[i].va) + into,
		.len = l->end[i] - off,
	};
}

static struct klm_piece piece_strided(const struct klm_list *l, uint32_t i, uint64_t round,
				      uint64_t off)
{
	const struct umr_stride *s = stride_of(l, i);

	/* The key that the piece names refuses an address that wraps. */
	return (struct klm_piece){
		.key = be32_get(s->mkey),
		.va = be64_get(s->va) + round * be16_get(s->stride) + (off - begin_of(l, i)),
		.len = l->end[i] - off,
	};
}

static struct klm_piece piece_ksm(const struct klm_list *l, uint64_t off)
{
	uint64_t i = off >> l->log_entry_bytes;
	uint64_t into = off - (i << l->log_entry_bytes);

	return (struct klm_piece){
		.key = be32_get(l->entry[i].mkey),
		.va = be64_get(l->entry[i].va) + into,
		.len = (1ull << l->log_entry_bytes) - into,
	};
}

uint32_t klm_list_pieces(const struct klm_list *l, uint64_t off, uint64_t len,
			 struct klm_piece *out, uint32_t max)
{
	uint32_t i = l->strided, n = 0;
	uint64_t round = 0;

	if (l->strided && len) {
		round = off / l->cycle;
		off -= round * l->cycle;
	}
	while (len && n < max) {
		struct klm_piece *p = &out[n++];

		if (l->kind == MKEY_LIST_KSM) {
			*p = piece_ksm(l, off);
		} else {
			i = entry_near(l, i, off);
			*p = l->strided ? piece_strided(l, i, round, off) : piece_klm(l, i, off);
			i++;
		}
		p->len = min_u64(p->len, len);
		len -= p->len;
		off += p->len;
		if (l->strided && off == l->cycle) {
			off = 0;
			round++;
			i = 1;
		}
	}
	return n;
}
