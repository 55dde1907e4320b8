// SPDX-License-Identifier: BSD-2-Clause
/* See definer.h. */
#include "adapter/ste/definer.h"

#include <string.h>

static void definer_put32(uint8_t *at, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Puts the fields of the format: registers, Ethernet, TCP flags. */
static void definer_ethernet(const struct ste_frame *f, uint8_t *tag)
{
	uint8_t l2[STE_TAG_BYTES];

	definer_put32(tag, f->reg_c[0]);
	definer_put32(tag + 4, f->reg_c[1]);
	memcpy(tag + 8, f->key.dst_mac, 6);
	memcpy(tag + 14, f->key.ether_type, 2);
	/* The fragment bit, the types and the VLAN tag stand as in the tag of an address. */
	if (ste_tag(f, STE_L2_DST, l2))
		memcpy(tag + 16, l2, 4);
	memcpy(tag + 24, f->key.src_mac, 6);
	if (f->key.l4_proto == IP_PROTO_TCP)
		tag[31] = f->bytes[f->at.l4 + 13];
}

bool ste_definer_known(uint32_t format)
{
	return format == STE_DEFINER_ETHERNET;
}

void ste_definer_tag(const struct ste_frame *f, const struct ste_definer *d,
		     uint8_t tag[STE_MATCH_TAG_BYTES])
{
	memset(tag, 0, STE_MATCH_TAG_BYTES);
	if (d->format == STE_DEFINER_ETHERNET)
		definer_ethernet(f, tag);
	for (unsigned i = 0; i < STE_MATCH_TAG_BYTES; i++)
		tag[i] &= d->mask[i];
}
