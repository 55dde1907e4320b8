/* SPDX-License-Identifier: BSD-2-Clause */
/* How seeds of the uverbs target are written: calls and their attributes in its language. */
#pragma once

#include "uverbs_input.h"

/* Where things are in the program's memory: first bytes of the areas. */
#define RING(n) (AREA_RING0 + (n))

struct patch {
	uint8_t off;
	uint8_t what;
};

#define PLACE_AT(member_offset, number)                                                \
	{                                                                              \
		(uint8_t)((member_offset) / 4), (uint8_t)(PATCH_PLACE | (number) << 2) \
	}

void put_block(struct seed *s, const void *src, size_t n, const struct patch *patches,
	       unsigned npatches);
void put_ioctl(struct seed *s, uint32_t object, uint32_t method, unsigned nattrs);
void attr_out(struct seed *s, uint32_t id, uint32_t len);
void attr_data(struct seed *s, uint32_t id, uint32_t len, uint64_t v);
void attr_handle(struct seed *s, uint32_t id, uint32_t handle);
void attr_fd(struct seed *s, uint32_t id, uint32_t number);
void attr_place(struct seed *s, uint32_t id, uint32_t place, uint32_t len);
void attr_block(struct seed *s, uint32_t id, const void *src, size_t n, const struct patch *patches,
		unsigned npatches);

/* Opens a context by ioctl: the beginning of all else. */
void put_context_by_ioctl(struct seed *s);
/* Seeds of DEVX, uverbs_devx_seeds.c. */
void devx_seeds(struct seed *s);
