// SPDX-License-Identifier: BSD-2-Clause
/* The link to owners that no other link leads to. */
#include "wire/link.h"

static enum wire_verdict none_xmit(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)l;
	(void)to;
	(void)p;
	return WIRE_LOST;
}

static uint32_t none_max_payload(struct link *l, uint32_t to, bool by_reference_ok)
{
	(void)l;
	(void)to;
	(void)by_reference_ok;
	return LINK_MIN_PAYLOAD;
}

static bool none_has_room(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)l;
	(void)to;
	(void)p;
	return true;
}

const struct link_ops link_none_ops = {
	.xmit = none_xmit,
	.max_payload = none_max_payload,
	.has_room = none_has_room,
};
