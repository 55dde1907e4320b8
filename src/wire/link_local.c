// SPDX-License-Identifier: BSD-2-Clause
/* Loopback within the process: the receiver runs inside of the sender's wire_xmit. */
#include "wire/deliver.h"
#include "wire/link.h"

static enum wire_verdict local_xmit(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)to;
	return wire_process_deliver(l->process, p) ? WIRE_SENT : WIRE_LOST;
}

static uint32_t local_max_payload(struct link *l, uint32_t to, bool by_reference_ok)
{
	(void)l;
	(void)to;
	(void)by_reference_ok;
	return (uint32_t)IB_MAX_MSG_BYTES;
}

static bool local_has_room(struct link *l, uint32_t to, const struct pkt *p)
{
	(void)l;
	(void)to;
	(void)p;
	return true;
}

const struct link_ops link_local_ops = {
	.immediate = true,
	.xmit = local_xmit,
	.max_payload = local_max_payload,
	.has_room = local_has_room,
};
