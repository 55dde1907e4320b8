// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs_put.h. */
#include "uverbs_put.h"

#include <string.h>

#define GIVEN_MAX 252u /* a byte, and whole words */

static uint32_t word_at(const uint8_t *bytes, size_t at, size_t n)
{
	uint32_t word = 0;

	memcpy(&word, bytes + at, n - at < sizeof(word) ? n - at : sizeof(word));
	return word;
}

/* Zeros at the end are not given, and what is far behind comes as patches of a word each. */
void put_block(struct seed *s, const void *src, size_t n, const struct patch *patches,
	       unsigned npatches)
{
	const uint8_t *bytes = src;
	size_t given = n < GIVEN_MAX ? n : GIVEN_MAX;
	unsigned words = 0;

	while (given && !bytes[given - 1])
		given--;
	for (size_t at = GIVEN_MAX; at < n; at += 4)
		words += word_at(bytes, at, n) != 0;
	put_u16(s, (uint32_t)n);
	put_u8(s, (uint32_t)given);
	put_u8(s, npatches + words);
	put_bytes(s, src, given);
	for (unsigned i = 0; i < npatches; i++) {
		put_u8(s, patches[i].off);
		put_u8(s, patches[i].what);
	}
	for (size_t at = GIVEN_MAX; at < n; at += 4) {
		uint32_t word = word_at(bytes, at, n);

		if (!word)
			continue;
		put_u8(s, (uint32_t)(at / 4));
		put_u8(s, PATCH_WORD);
		put_u32(s, word);
	}
}

static uint32_t short_id(uint32_t id)
{
	return id >= 0x1000 ? IDS_DRIVER | (id & 0x7f) : id;
}

void put_ioctl(struct seed *s, uint32_t object, uint32_t method, unsigned nattrs)
{
	put_u8(s, OP_IOCTL);
	put_u8(s, short_id(object));
	put_u8(s, short_id(method));
	put_u8(s, nattrs);
}

void attr_out(struct seed *s, uint32_t id, uint32_t len)
{
	put_u8(s, short_id(id));
	put_u8(s, KIND_OUT);
	put_u16(s, len);
}

void attr_data(struct seed *s, uint32_t id, uint32_t len, uint64_t v)
{
	put_u8(s, short_id(id));
	put_u8(s, KIND_DATA);
	put_u8(s, len);
	put_u64(s, v);
}

void attr_handle(struct seed *s, uint32_t id, uint32_t handle)
{
	put_u8(s, short_id(id));
	put_u8(s, KIND_HANDLE);
	put_u8(s, handle);
}

void attr_block(struct seed *s, uint32_t id, const void *src, size_t n, const struct patch *patches,
		unsigned npatches)
{
	put_u8(s, short_id(id));
	put_u8(s, KIND_BLOCK);
	put_block(s, src, n, patches, npatches);
}

void attr_fd(struct seed *s, uint32_t id, uint32_t number)
{
	put_u8(s, short_id(id));
	put_u8(s, KIND_FD);
	put_u8(s, number);
}

void attr_place(struct seed *s, uint32_t id, uint32_t place, uint32_t len)
{
	put_u8(s, short_id(id));
	put_u8(s, KIND_PLACE);
	put_u8(s, place);
	put_u16(s, len);
}
