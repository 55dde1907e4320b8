// SPDX-License-Identifier: BSD-2-Clause
/* How fast a port is, by the codes of its width and speed (IBTA 14.2.5.6). */
#include "subnet/subnet.h"

uint32_t subnet_width_lanes(uint32_t width)
{
	switch (width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 0;
	}
}

/* The fastest speed first. */
static const struct subnet_speed speeds[] = {
	{SUBNET_SPEED_XDR, 2000, "XDR"},
	{8u << 8, 1000, "NDR"},
	{4u << 8, 500, "HDR"},
	{2u << 8, 250, "EDR"},
	{1u << 8, 140, "FDR"},
	{SUBNET_SPEED_FDR10, 100, "FDR10"},
	{4, 100, "QDR"},
	{2, 50, "DDR"},
	{1, 25, "SDR"},
};

const struct subnet_speed *subnet_speed_of(uint32_t speed)
{
	const struct subnet_speed *s = speeds;

	while (s < speeds + array_size(speeds) - 1 && !(speed & s->code))
		s++;
	return s;
}

#define BYTES_OF_TENTH 12500000ull /* per second, for 0.1 Gb/s */
#define LANES_UNSAID   4u

uint64_t subnet_port_bytes_per_second(const struct subnet_port *p)
{
	uint32_t speed = atomic_load_explicit(&p->speed, memory_order_relaxed);
	uint32_t lanes = subnet_width_lanes(atomic_load_explicit(&p->width, memory_order_relaxed));

	/* A port that does not say its speed is as fast as any. */
	return (speed ? subnet_speed_of(speed) : speeds)->tenths * BYTES_OF_TENTH *
	       (lanes ? lanes : LANES_UNSAID);
}
