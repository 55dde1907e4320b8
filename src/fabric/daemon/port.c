// SPDX-License-Identifier: BSD-2-Clause
/*
 * The state of a port.  It lies in the subnet, where the wires of all processes read it for each
 * packet, so traffic stops without a message to anybody.
 */
#include <errno.h>

#include "fabric/daemon/fabric.h"

static bool other_end_up(const struct fabric *f, uint32_t row)
{
	const struct port_end *end = &f->ends[row];

	if (!end->tied)
		return true;
	return end->peer == SUBNET_NONE ? end->carrier_plus_1 && end->carrier_up
					: !f->ends[end->peer].pulled;
}

/* An Ethernet port comes up without a manager. */
int port_settle(struct fabric *f, uint32_t row)
{
	bool up = !f->ends[row].pulled && other_end_up(f, row);

	if (!subnet_set_state(&f->subnet, row, up ? IB_PORT_ACTIVE : IB_PORT_DOWN))
		return 0;
	if (!up)
		f->base[row][PORT_LINK_DOWNED]++;
	return 1;
}

bool port_pull(struct fabric *f, uint32_t row, bool down)
{
	uint32_t peer = f->net.ports[row].cable;
	bool other = !down && peer != SUBNET_NONE && f->net.ports[peer].pulled;

	if (f->net.ports[row].pulled == down && !other)
		return false;
	if (other)
		net_pull(&f->net, peer, false);
	net_pull(&f->net, row, down);
	manage_links(f);
	return true;
}

int port_set_state(struct fabric *f, uint32_t row, uint32_t state)
{
	bool down = state == IB_PORT_DOWN;

	if (row >= f->subnet.nports)
		return -ENOENT;
	/* The subnet manager sets the states in between. */
	if (!down && state != IB_PORT_ACTIVE)
		return -EINVAL;
	if (f->subnet.ports[row].ethernet) {
		f->ends[row].pulled = down;
		return port_settle(f, row);
	}
	return port_pull(f, row, down);
}
