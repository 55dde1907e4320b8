// SPDX-License-Identifier: BSD-2-Clause
/*
 * The state of a port.  It lies in the subnet, where the wires of all processes read it per packet,
 * so traffic stops without a message to anybody.
 */
#include <errno.h>

#include "fabric/daemon/fabric.h"

int port_set_state(struct fabric *f, uint32_t row, uint32_t state)
{
	if (row >= f->subnet.nports)
		return -ENOENT;
	/* A subnet manager passes INIT and ARMED on the way up (IBTA 14.2.5.6, PortState); the
	 * built-in one brings a port to ACTIVE at once. */
	if (state != IB_PORT_DOWN && state != IB_PORT_ACTIVE)
		return -EINVAL;
	if (!subnet_set_state(&f->subnet, row, (enum ib_port_state)state))
		return 0;
	if (state == IB_PORT_DOWN)
		f->base[row][PORT_LINK_DOWNED]++;
	return 1;
}
