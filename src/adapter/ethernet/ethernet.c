// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/ethernet/ethernet.h"

#include "adapter/core/device.h"

void ethernet_init(struct ethernet *e)
{
	for (unsigned i = 0; i < FLOW_DOMAINS; i++)
		steering_init(&e->rules[i]);
	icm_init(&e->icm);
	ids_init(&e->tables);
	ids_init(&e->samplers);
	ids_init(&e->counters);
	ids_init(&e->headers);
}

void ethernet_release(struct ethernet *e)
{
	for (unsigned i = 0; i < FLOW_DOMAINS; i++)
		steering_release(&e->rules[i]);
	icm_release(&e->icm);
	ids_release(&e->tables);
	ids_release(&e->samplers);
	ids_release(&e->counters);
	ids_release(&e->headers);
}

struct icm *adapter_icm(struct adapter *a)
{
	return &a->ethernet->icm;
}
