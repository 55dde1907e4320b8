// SPDX-License-Identifier: BSD-2-Clause
/*
 * The state of a port.  It lies in the subnet, where the wires of all processes read it per packet,
 * so traffic stops without a message to anybody.
 */
#include <errno.h>

#include "fabric/daemon/fabric.h"

/* Ethernet needs nobody to be brought up. */
static int ethernet_set_state(struct fabric *f, uint32_t row, enum ib_port_state state)
{
	if (!subnet_set_state(&f->subnet, row, state))
		return 0;
	if (state == IB_PORT_DOWN)
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
	/* What lies between is the subnet manager's business. */
	if (!down && state != IB_PORT_ACTIVE)
		return -EINVAL;
	if (f->subnet.ports[row].ethernet)
		return ethernet_set_state(f, row, (enum ib_port_state)state);
	return port_pull(f, row, down);
}
