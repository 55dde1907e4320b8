// SPDX-License-Identifier: BSD-2-Clause
/* Opens what manages the subnet, from the bottom to the top; see fabric.h. */
#include "fabric/daemon/fabric.h"

/* Opens the agents that every port has. */
static int agents_open(struct fabric *f)
{
	int ret = sma_open(&f->sma, &f->mad);

	if (ret)
		return ret;
	ret = pma_open(&f->pma, &f->mad);
	if (ret)
		sma_close(&f->sma);
	return ret;
}

static void agents_close(struct fabric *f)
{
	pma_close(&f->pma);
	sma_close(&f->sma);
}

int manage_open(struct fabric *f)
{
	int ret = mad_open(&f->mad, &f->net, &f->loop);

	if (ret)
		return ret;
	ret = agents_open(f);
	if (ret)
		goto close_mad;
	ret = sm_open(&f->sm, &f->mad, f->sm_mode);
	if (ret)
		goto close_agents;
	if (f->sm_priority)
		sm_negotiate(&f->sm, f->sm_priority, &f->sma);
	umad_open(&f->umad, &f->mad, &f->sm);
	f->managed = true;
	return 0;

close_agents:
	agents_close(f);
close_mad:
	mad_close(&f->mad);
	return ret;
}

void manage_close(struct fabric *f)
{
	if (!f->managed)
		return;
	f->managed = false;
	umad_close(&f->umad);
	sm_close(&f->sm);
	agents_close(f);
	mad_close(&f->mad);
}

void manage_links(struct fabric *f)
{
	sm_catch_up(&f->sm);
}
