// SPDX-License-Identifier: BSD-2-Clause
/* Attributes of a port as the kernel prints them in sysfs. */
#include <errno.h>
#include <stdio.h>

#include "fabric/attr.h"

#define ETHERNET_CAP_MASK 0x00010000u /* IsCommunicationManagementSupported */
#define LANES_UNSAID	  4u

static const char *const state_text[] = {
	[IB_PORT_NOP] = "0: NOP",     [IB_PORT_DOWN] = "1: DOWN",     [IB_PORT_INIT] = "2: INIT",
	[IB_PORT_ARMED] = "3: ARMED", [IB_PORT_ACTIVE] = "4: ACTIVE",
};

/* PortPhysicalState (IBTA 14.2.5.6), in the kernel's words. */
static const char *const phys_text[] = {
	"0: <unknown>",
	"1: Sleep",
	"2: Polling",
	"3: Disabled",
	"4: PortConfigurationTraining",
	"5: LinkUp",
	"6: LinkErrorRecovery",
	"7: Phy Test",
};

static uint32_t port_load(const _Atomic(uint32_t) *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

static int rate_text(const struct subnet_port *p, char *buf, size_t size)
{
	const struct subnet_speed *speed = subnet_speed_of(port_load(&p->speed));
	uint32_t width = subnet_width_lanes(port_load(&p->width));
	uint32_t lanes = width ? width : LANES_UNSAID, tenths = speed->tenths * lanes;

	return snprintf(buf, size, "%u%s Gb/sec (%uX %s)\n", tenths / 10, tenths % 10 ? ".5" : "",
			lanes, speed->name);
}

static int phys_state_text(const struct subnet_port *p, char *buf, size_t size)
{
	uint32_t state = port_load(&p->state), phys = port_load(&p->phys_state);

	if (p->ethernet)
		phys = state <= IB_PORT_DOWN ? 2 : 5;
	return snprintf(buf, size, "%s\n", phys_text[phys < array_size(phys_text) ? phys : 0]);
}

int port_attr_text(const struct subnet_port *p, enum port_attr attr, char *buf, size_t size)
{
	uint32_t state = port_load(&p->state);

	switch (attr) {
	case ATTR_LID:
		return snprintf(buf, size, "0x%x\n", port_load(&p->lid));
	case ATTR_LID_MASK_COUNT:
		return snprintf(buf, size, "%u\n", port_load(&p->lmc));
	case ATTR_SM_LID:
		return snprintf(buf, size, "0x%x\n", port_load(&p->sm_lid));
	case ATTR_SM_SL:
		return snprintf(buf, size, "%u\n", port_load(&p->sm_sl));
	case ATTR_STATE:
		return snprintf(buf, size, "%s\n",
				state_text[state < array_size(state_text) ? state : IB_PORT_NOP]);
	case ATTR_PHYS_STATE:
		return phys_state_text(p, buf, size);
	case ATTR_RATE:
		return rate_text(p, buf, size);
	case ATTR_CAP_MASK:
		return snprintf(buf, size, "0x%08x\n",
				p->ethernet ? ETHERNET_CAP_MASK : port_load(&p->cap_mask));
	case ATTR_LINK_LAYER:
		return snprintf(buf, size, "%s\n", p->ethernet ? "Ethernet" : "InfiniBand");
	case PORT_ATTRS:
		break;
	}
	return -ENOENT;
}
