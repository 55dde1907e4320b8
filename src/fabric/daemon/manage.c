// SPDX-License-Identifier: BSD-2-Clause
/* Opens what manages the subnet, from the bottom to the top; see fabric.h. */
#include "fabric/daemon/fabric.h"

/* ---- until the subnet manager does it ---- */

static void port_raise(struct fabric *f, uint32_t row)
{
	if (net_info(&f->net, row, PI_STATE) == IB_PORT_INIT) {
		(void)!net_set_state(&f->net, row, IB_PORT_ARMED);
		(void)!net_set_state(&f->net, row, IB_PORT_ACTIVE);
	}
}

static int subnet_raise(struct fabric *f)
{
	uint32_t lid = 1;
	int ret = 0;

	for (uint32_t row = 0; row < f->subnet.nports && !ret; row++) {
		if (f->subnet.ports[row].ethernet)
			continue;
		if (net_end_port(&f->net, row) == row) {
			ret = net_set_lid(&f->net, row, lid++, 0);
			net_set_sm(&f->net, row, 1, 0);
		}
		port_raise(f, row);
	}
	return ret;
}

int manage_open(struct fabric *f)
{
	return f->sm_mode == SM_EXTERNAL ? 0 : subnet_raise(f);
}

void manage_close(struct fabric *f)
{
	(void)f;
}

void manage_port(struct fabric *f, uint32_t row)
{
	uint32_t peer = net_peer(&f->net, row, IB_PORT_INIT);

	if (f->sm_mode == SM_EXTERNAL || peer == SUBNET_NONE)
		return;
	port_raise(f, row);
	port_raise(f, peer);
}
