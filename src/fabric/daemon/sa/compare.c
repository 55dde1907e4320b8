// SPDX-License-Identifier: BSD-2-Clause
/* Decides whether a record has the components that a query names. */
#include "fabric/daemon/sa/sa.h"

#include <string.h>

static bool field_equal(struct sa_field f, const uint8_t *a, const uint8_t *b)
{
	struct prm_field narrow = {.bit = f.bit, .width = (uint8_t)f.width};

	if (f.bit % 8 == 0 && f.width % 8 == 0)
		return !memcmp(a + f.bit / 8, b + f.bit / 8, f.width / 8u);
	return prm_get(a, narrow) == prm_get(b, narrow);
}

bool sa_compare(const struct sa_record *kind, uint64_t mask, const uint8_t *wanted,
		const uint8_t *record)
{
	for (uint32_t i = 0; i < kind->nfields && i < 64; i++)
		if (mask >> i & 1 && !field_equal(kind->fields[i], wanted, record))
			return false;
	return true;
}

static bool order_selected(enum sa_selector selector, int order)
{
	switch (selector) {
	case SA_GREATER:
		return order > 0;
	case SA_LESS:
		return order < 0;
	case SA_EXACTLY:
		return order == 0;
	case SA_LARGEST:
		break;
	}
	return true;
}

bool sa_select(enum sa_selector selector, uint32_t wanted, uint32_t value)
{
	return order_selected(selector, value < wanted ? -1 : value > wanted);
}

/* ---- rates ---- */

/* The speed of each rate's number, in units of 0.1 Gb/s. */
static const uint16_t rate_speed[] = {
	[2] = 25,    [3] = 100,	  [4] = 300,   [5] = 50,    [6] = 200,	  [7] = 400,
	[8] = 600,   [9] = 800,	  [10] = 1200, [11] = 140,  [12] = 560,	  [13] = 1120,
	[14] = 1680, [15] = 250,  [16] = 1000, [17] = 2000, [18] = 3000,  [19] = 280,
	[20] = 500,  [21] = 4000, [22] = 6000, [23] = 8000, [24] = 12000,
};

#define RATES (sizeof(rate_speed) / sizeof(rate_speed[0]))

static int rate_speed_of(uint32_t rate)
{
	return rate < RATES ? rate_speed[rate] : 0;
}

bool sa_rate_valid(uint32_t rate)
{
	return rate_speed_of(rate) != 0;
}

uint32_t sa_rate_order(uint32_t rate)
{
	uint32_t order = 1;

	if (!sa_rate_valid(rate))
		return 0;
	for (uint32_t i = 0; i < RATES; i++)
		order += sa_rate_valid(i) && rate_speed[i] < rate_speed[rate];
	return order;
}

uint32_t sa_rate_of_order(uint32_t order)
{
	for (uint32_t i = 0; order && i < RATES; i++)
		if (sa_rate_order(i) == order)
			return i;
	return 0;
}

int sa_rate_compare(uint32_t a, uint32_t b)
{
	return rate_speed_of(a) - rate_speed_of(b);
}

bool sa_select_rate(enum sa_selector selector, uint32_t wanted, uint32_t rate)
{
	return order_selected(selector, sa_rate_compare(rate, wanted));
}

/* Returns the speed of one lane, in units of 0.1 Gb/s: SDR to QDR, FDR to XDR. */
static uint32_t port_lane_speed(const struct net *n, uint32_t row)
{
	static const uint16_t extended[] = {[1] = 140, [2] = 250, [4] = 500, [8] = 1000};
	uint32_t ext = net_info(n, row, PI_EXT_SPEED_ACTIVE);

	if (net_info(n, row, PI_XDR_ACTIVE))
		return 2000;
	if (ext && ext < sizeof(extended) / sizeof(extended[0]) && extended[ext])
		return extended[ext];
	return 25u * net_info(n, row, PI_SPEED_ACTIVE);
}

uint32_t sa_port_rate(const struct net *n, uint32_t row)
{
	uint32_t lanes = subnet_width_lanes(net_info(n, row, PI_WIDTH_ACTIVE));
	uint32_t speed = port_lane_speed(n, row) * (lanes ? lanes : 1);
	uint32_t best = 2;

	for (uint32_t i = 2; i < RATES; i++)
		if (rate_speed[i] <= speed && rate_speed[i] > rate_speed[best])
			best = i;
	return best;
}
