// SPDX-License-Identifier: BSD-2-Clause
/* See egress.h. */
#include <string.h>

#include "adapter/ethernet/egress.h"
#include "adapter/ethernet/frame_pkt.h"

/* How often a switch may send what it receives back into a switch, in one process. */
#define XMIT_NESTED 4u

static _Thread_local unsigned xmit_nested;

enum raw_verdict frame_to_wire(struct adapter *a, uint32_t sqpn, const uint8_t *frame,
			       uint32_t bytes)
{
	struct frame_pkt f;
	enum wire_verdict v;

	if (xmit_nested == XMIT_NESTED)
		return RAW_SENT; /* it is lost, because it goes round in circles */
	frame_pkt_make(&f, a, sqpn, frame, bytes);
	xmit_nested++;
	v = wire_xmit(a->wire, &f.pkt);
	xmit_nested--;
	return v == WIRE_BUSY ? RAW_BUSY : RAW_SENT;
}
