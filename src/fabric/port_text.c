// SPDX-License-Identifier: BSD-2-Clause
/* Attributes of a port as the kernel prints them in sysfs. */
#include <errno.h>
#include <stdio.h>

#include "fabric/attr.h"

#define ETHERNET_CAP_MASK 0x00010000u /* IsCommunicationManagementSupported */
#define ETHERNET_RATE	  "200 Gb/sec (4X HDR)"

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

/* Of LinkWidthActive, a bit. */
static uint32_t lanes_of(uint32_t width)
{
	switch (width) {
	case 1:
		return 1;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 4;
	}
}

/* Of LinkSpeedActive, and LinkSpeedExtActive << 8; tenths of Gb/s of one lane. */
static const struct rate {
	uint32_t speed;
	uint32_t tenths;
	const char *name;
} rates[] = {
	{8u << 8, 1000, "NDR"}, {4u << 8, 500, "HDR"}, {2u << 8, 250, "EDR"},
	{1u << 8, 140, "FDR"},	{4, 100, "QDR"},       {2, 50, "DDR"},
};

static int rate_text(const struct subnet_port *p, char *buf, size_t size)
{
	struct rate rate = {0, 25, "SDR"};
	uint32_t speed = port_load(&p->speed), lanes = lanes_of(port_load(&p->width));

	for (unsigned i = array_size(rates); i--;)
		if (speed & rates[i].speed)
			rate = rates[i];
	return snprintf(buf, size, "%u%s Gb/sec (%uX %s)\n", rate.tenths * lanes / 10,
			rate.tenths * lanes % 10 ? ".5" : "", lanes, rate.name);
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
		if (p->ethernet)
			return snprintf(buf, size, "%s\n", ETHERNET_RATE);
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
