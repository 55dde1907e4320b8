// SPDX-License-Identifier: BSD-2-Clause
/* The forwarding tables of switches; see net.h. */
#include "fabric/daemon/node/net.h"

#define LFT_BLOCK 64u
#define MFT_BLOCK SUBNET_MFT_BLOCK
#define MFT_PORTS 16u /* ports in one mask */

/* ---- linear ---- */

void net_lft_block_set(struct net *n, struct net_switch *sw, uint32_t block, const uint8_t *ports)
{
	_Atomic(uint8_t) *at = sw->tables->linear + (size_t)block * LFT_BLOCK;
	bool changed = false;

	if (block >= NET_LINEAR_CAP / LFT_BLOCK)
		return;
	for (uint32_t i = 0; i < LFT_BLOCK; i++) {
		uint8_t v = ports[i] ^ NET_DROP;

		/* Storing what is there already would make a page of zeroes real. */
		if (atomic_load_explicit(&at[i], memory_order_relaxed) == v)
			continue;
		if (!changed)
			net_settle(n);
		atomic_store_explicit(&at[i], v, memory_order_release);
		changed = true;
	}
	if (changed)
		subnet_raise_epoch(n->subnet);
}

void net_lft_block_get(const struct net_switch *sw, uint32_t block, uint8_t *ports)
{
	for (uint32_t i = 0; i < LFT_BLOCK; i++)
		ports[i] =
			block < NET_LINEAR_CAP / LFT_BLOCK
				? atomic_load_explicit(&sw->tables->linear[block * LFT_BLOCK + i],
						       memory_order_relaxed) ^
					  NET_DROP
				: NET_DROP;
}

void net_linear_top_set(struct net *n, struct net_switch *sw, uint32_t top)
{
	if (sw->linear_top == top)
		return;
	net_settle(n);
	sw->linear_top = (uint16_t)top;
	atomic_store_explicit(&sw->tables->linear_top, top, memory_order_release);
	subnet_raise_epoch(n->subnet);
}

/* ---- multicast ---- */

static bool mft_block_valid(const struct net_switch *sw, uint32_t block, uint32_t slice)
{
	return block < NET_MULTICAST_CAP / MFT_BLOCK && slice < sw->mft_slices;
}

static _Atomic(uint16_t) *mft_block(const struct net_switch *sw, uint32_t block, uint32_t slice)
{
	return sw->tables->multicast[block][slice];
}

void net_mft_block_set(struct net *n, struct net_switch *sw, uint32_t block, uint32_t slice,
		       const uint8_t *masks)
{
	bool changed = false;

	if (!mft_block_valid(sw, block, slice))
		return;
	for (uint32_t i = 0; i < MFT_BLOCK; i++) {
		_Atomic(uint16_t) *at = &mft_block(sw, block, slice)[i];
		uint16_t v = mad_get16(masks, i * 2);

		if (atomic_load_explicit(at, memory_order_relaxed) == v)
			continue;
		if (!changed)
			net_settle(n);
		atomic_store_explicit(at, v, memory_order_release);
		changed = true;
	}
	if (changed)
		subnet_raise_epoch(n->subnet);
}

void net_multicast_top_set(struct net *n, struct net_switch *sw, uint32_t top)
{
	if (sw->multicast_top == top)
		return;
	net_settle(n);
	sw->multicast_top = (uint16_t)top;
	atomic_store_explicit(&sw->tables->multicast_top, top, memory_order_release);
	subnet_raise_epoch(n->subnet);
}

void net_mft_block_get(const struct net_switch *sw, uint32_t block, uint32_t slice, uint8_t *masks)
{
	bool valid = mft_block_valid(sw, block, slice);

	for (uint32_t i = 0; i < MFT_BLOCK; i++)
		mad_put16(masks, i * 2,
			  valid ? atomic_load_explicit(&mft_block(sw, block, slice)[i],
						       memory_order_relaxed)
				: 0);
}

bool net_mft(const struct net_switch *sw, uint32_t lid, uint32_t port)
{
	uint32_t at = lid - MAD_LID_MULTICAST, slice = port / MFT_PORTS;

	if (lid < MAD_LID_MULTICAST || !mft_block_valid(sw, at / MFT_BLOCK, slice))
		return false;
	/* Top 0: the SM has not set it, so all entries count (IBTA 14.2.5.4). */
	if (sw->multicast_top && lid > sw->multicast_top)
		return false;
	return atomic_load_explicit(&mft_block(sw, at / MFT_BLOCK, slice)[at % MFT_BLOCK],
				    memory_order_relaxed) >>
		       port % MFT_PORTS &
	       1;
}
