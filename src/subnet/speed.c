// SPDX-License-Identifier: BSD-2-Clause
/* How fast a port is, of the codes of its width and speed (IBTA 14.2.5.6). */
#include "subnet/subnet.h"

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

/* Of LinkSpeedActive, and LinkSpeedExtActive << 8: the fastest first; megabytes a second of one lane. */
static const struct {
	uint32_t speed, megabytes;
} speeds[] = {
	{8u << 8, 12500}, {4u << 8, 6250}, {2u << 8, 3125}, {1u << 8, 1750}, {4, 1250}, {2, 625},
};

/* What Ethernet ports say of themselves. */
#define ETHERNET_BYTES_PER_SECOND 25000000000ull

uint64_t subnet_port_bytes_per_second(const struct subnet_port *p)
{
	uint32_t speed = atomic_load_explicit(&p->speed, memory_order_relaxed);
	uint64_t lanes = lanes_of(atomic_load_explicit(&p->width, memory_order_relaxed));

	if (p->ethernet)
		return ETHERNET_BYTES_PER_SECOND;
	for (unsigned i = 0; i < array_size(speeds); i++)
		if (!speed || speed & speeds[i].speed)
			return lanes * speeds[i].megabytes * 1000000u;
	return lanes * 312500000u; /* single data rate */
}
