// SPDX-License-Identifier: BSD-2-Clause
/* Attributes that are blocks of a table: P_Keys, GUIDs, forwarding, SLs and VLs. */
#include <string.h>

#include "fabric/daemon/sma/sma.h"

#define LINEAR_BLOCK	64u /* entries in a block */
#define MULTICAST_BLOCK 32u
#define VLARB_BLOCKS	4u /* low priority 1 and 2, high 3 and 4 */
#define SL2VL_BYTES	8u

/* Returns the port that a part of the modifier names on a switch.  On other nodes each port has one
 * table, and the SMP asks about the port that it came in by. */
static uint32_t table_row(const struct smp_request *r, uint32_t number)
{
	if (!net_is_switch(r->net, r->row))
		return r->row;
	return net_port_row(r->net, net_node_of(r->net, r->row), number);
}

static unsigned table_status(int err)
{
	return err ? MAD_STATUS_BAD_VALUE : MAD_STATUS_OK;
}

unsigned sma_pkey_table(struct smp_request *r)
{
	uint32_t row = table_row(r, r->modifier >> 16), block = r->modifier & 0xffff;
	int err;

	if (row == SUBNET_NONE)
		return MAD_STATUS_BAD_VALUE;
	if (r->set) {
		err = net_pkeys_set(r->net, row, block, r->data);
		if (err)
			return table_status(err);
	}
	return table_status(net_pkeys_get(r->net, row, block, r->data));
}

unsigned sma_guid_info(struct smp_request *r)
{
	uint32_t row = net_end_port(r->net, r->row);
	int err;

	if (r->set) {
		err = net_guids_set(r->net, row, r->modifier, r->data);
		if (err)
			return table_status(err);
	}
	return table_status(net_guids_get(r->net, row, r->modifier, r->data));
}

unsigned sma_sl_to_vl(struct smp_request *r)
{
	bool is_switch = net_is_switch(r->net, r->row);
	uint32_t row = table_row(r, r->modifier & 0xff);
	uint32_t in = is_switch ? r->modifier >> 8 & 0xff : 0;
	uint8_t map[SL2VL_BYTES];
	int err;

	if (row == SUBNET_NONE || in > net_node_of(r->net, r->row)->nports)
		return MAD_STATUS_BAD_VALUE;
	if (r->set) {
		memcpy(map, r->data, sizeof(map));
		err = net_sl2vl_set(r->net, row, in, map);
		if (err)
			return table_status(err);
	}
	net_sl2vl_get(r->net, row, in, map);
	memset(r->data, 0, MAD_ATTRIBUTE_BYTES);
	memcpy(r->data, map, sizeof(map));
	return MAD_STATUS_OK;
}

unsigned sma_vl_arbitration(struct smp_request *r)
{
	uint32_t row = table_row(r, r->modifier & 0xffff), block = r->modifier >> 16;
	int err;

	if (row == SUBNET_NONE || !block || block > VLARB_BLOCKS)
		return MAD_STATUS_BAD_VALUE;
	if (r->set) {
		err = net_vlarb_set(r->net, row, block, r->data);
		if (err)
			return table_status(err);
	}
	net_vlarb_get(r->net, row, block, r->data);
	return MAD_STATUS_OK;
}

unsigned sma_linear_table(struct smp_request *r)
{
	struct net_switch *sw = net_node_of(r->net, r->row)->sw;

	if (r->modifier >= NET_LINEAR_CAP / LINEAR_BLOCK)
		return MAD_STATUS_BAD_VALUE;
	if (r->set)
		net_lft_block_set(r->net, sw, r->modifier, r->data);
	net_lft_block_get(sw, r->modifier, r->data);
	return MAD_STATUS_OK;
}

unsigned sma_multicast_table(struct smp_request *r)
{
	struct net_switch *sw = net_node_of(r->net, r->row)->sw;
	uint32_t block = r->modifier & 0x1ff, slice = r->modifier >> 28;

	if (block >= NET_MULTICAST_CAP / MULTICAST_BLOCK || slice >= sw->mft_slices)
		return MAD_STATUS_BAD_VALUE;
	if (r->set)
		net_mft_block_set(r->net, sw, block, slice, r->data);
	net_mft_block_get(sw, block, slice, r->data);
	return MAD_STATUS_OK;
}
