// SPDX-License-Identifier: BSD-2-Clause
/* Attributes of a port as the kernel prints them in sysfs. */
#include <errno.h>
#include <stdio.h>

#include "fabric/attr.h"

/* What differs between the two kinds of port. */
static const struct {
	const char *link_layer;
	const char *rate;
	uint32_t cap_mask; /* PortInfo CapabilityMask (IBTA 14.2.5.6) */
} kinds[2] = {
	[false] = {"InfiniBand", "400 Gb/sec (4X NDR)", 0x2651e848},
	[true] = {"Ethernet", "200 Gb/sec (4X HDR)", 0x00010000},
};

#define CAP_IS_SM 0x2u

static const char *const state_text[] = {
	[IB_PORT_NOP] = "0: NOP",     [IB_PORT_DOWN] = "1: DOWN",     [IB_PORT_INIT] = "2: INIT",
	[IB_PORT_ARMED] = "3: ARMED", [IB_PORT_ACTIVE] = "4: ACTIVE",
};

int port_attr_text(const struct subnet_port *p, enum port_attr attr, char *buf, size_t size)
{
	uint32_t state = atomic_load_explicit(&p->state, memory_order_relaxed);
	uint32_t lid = atomic_load_explicit(&p->lid, memory_order_relaxed);
	uint32_t sm_lid = atomic_load_explicit(&p->sm_lid, memory_order_relaxed);
	uint32_t cap_mask = kinds[!!p->ethernet].cap_mask;

	switch (attr) {
	case ATTR_LID:
		return snprintf(buf, size, "0x%x\n", lid);
	case ATTR_LID_MASK_COUNT:
		return snprintf(buf, size, "%u\n",
				atomic_load_explicit(&p->lmc, memory_order_relaxed));
	case ATTR_SM_LID:
		return snprintf(buf, size, "0x%x\n", sm_lid);
	case ATTR_SM_SL:
		return snprintf(buf, size, "0\n");
	case ATTR_STATE:
		return snprintf(buf, size, "%s\n",
				state_text[state < array_size(state_text) ? state : IB_PORT_NOP]);
	case ATTR_PHYS_STATE:
		return snprintf(buf, size, "%s\n",
				state <= IB_PORT_DOWN ? "2: Polling" : "5: LinkUp");
	case ATTR_RATE:
		return snprintf(buf, size, "%s\n", kinds[!!p->ethernet].rate);
	case ATTR_CAP_MASK:
		if (!p->ethernet && lid == sm_lid)
			cap_mask |= CAP_IS_SM;
		return snprintf(buf, size, "0x%08x\n", cap_mask);
	case ATTR_LINK_LAYER:
		return snprintf(buf, size, "%s\n", kinds[!!p->ethernet].link_layer);
	case PORT_ATTRS:
		break;
	}
	return -ENOENT;
}
