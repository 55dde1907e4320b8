// SPDX-License-Identifier: BSD-2-Clause
/* The tables of switches and of ports; see net.h. */
#include "fabric/daemon/node/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the forwarding tables of switches ---- */

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

/* ---- the tables of a port: P_Keys, SL to VL, VL arbitration ---- */

/* ---- P_Keys ---- */

#define PKEY_BLOCK 32u

static bool pkey_block_valid(const struct net *n, uint32_t row, uint32_t block)
{
	return !n->subnet->ports[row].ethernet && block < SUBNET_IB_PKEYS / PKEY_BLOCK;
}

int net_pkeys_get(const struct net *n, uint32_t row, uint32_t block, uint8_t *out)
{
	if (!pkey_block_valid(n, row, block))
		return -ERANGE;
	for (uint32_t i = 0; i < PKEY_BLOCK; i++)
		mad_put16(out, i * 2, subnet_pkey(&n->subnet->ports[row], block * PKEY_BLOCK + i));
	return 0;
}

int net_pkeys_set(struct net *n, uint32_t row, uint32_t block, const uint8_t *in)
{
	bool changed = false;

	if (!pkey_block_valid(n, row, block))
		return -ERANGE;
	for (uint32_t i = 0; i < PKEY_BLOCK; i++) {
		_Atomic(uint16_t) *at = &n->subnet->ports[row].pkeys[block * PKEY_BLOCK + i];
		uint16_t v = mad_get16(in, i * 2);

		if (atomic_load_explicit(at, memory_order_relaxed) == v)
			continue;
		if (!changed)
			net_settle(n);
		atomic_store_explicit(at, v, memory_order_release);
		changed = true;
	}
	if (changed) {
		subnet_raise_epoch(n->subnet);
		net_tell(n, NET_PKEYS, row, 0);
	}
	return 0;
}

/* ---- SL to VL ---- */

#define SL2VL_BYTES 8u

/* A channel adapter has one table; a switch has one for each port that a packet came in by. */
static bool sl2vl_place(const struct net *n, uint32_t row, uint32_t in_port, uint32_t *at)
{
	bool per_port = net_is_switch(n, row) && n->ports[row].number;

	*at = per_port ? in_port * SL2VL_BYTES : 0;
	return !per_port || in_port <= net_node_of(n, row)->nports;
}

static size_t sl2vl_bytes(const struct net *n, uint32_t row)
{
	return (net_is_switch(n, row) ? net_node_of(n, row)->nports + 1u : 1u) * SL2VL_BYTES;
}

static void sl2vl_default(uint8_t out[SL2VL_BYTES])
{
	/* SL n maps to VL n, but no data goes by VL 15. */
	static const uint8_t start[SL2VL_BYTES] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xe7};

	memcpy(out, start, sizeof(start));
}

void net_sl2vl_get(const struct net *n, uint32_t row, uint32_t in_port, uint8_t out[8])
{
	uint32_t at;

	if (n->ports[row].sl2vl && sl2vl_place(n, row, in_port, &at))
		memcpy(out, n->ports[row].sl2vl + at, SL2VL_BYTES);
	else
		sl2vl_default(out);
}

int net_sl2vl_set(struct net *n, uint32_t row, uint32_t in_port, const uint8_t in[8])
{
	struct net_port *p = &n->ports[row];
	uint8_t now[SL2VL_BYTES];
	uint32_t at;

	if (!sl2vl_place(n, row, in_port, &at))
		return -ERANGE;
	net_sl2vl_get(n, row, in_port, now);
	if (!memcmp(now, in, sizeof(now)))
		return 0;
	if (!p->sl2vl) {
		p->sl2vl = malloc(sl2vl_bytes(n, row));
		if (!p->sl2vl)
			return -ENOMEM;
		for (size_t i = 0; i < sl2vl_bytes(n, row); i += SL2VL_BYTES)
			sl2vl_default(p->sl2vl + i);
	}
	memcpy(p->sl2vl + at, in, SL2VL_BYTES);
	return 0;
}

/* ---- VL arbitration ---- */

#define VLARB_BLOCKS 4u
#define VLARB_VLS    8u

#define VLARB_WEIGHT 4u

/*
 * Blocks count from 1: low, low from entry 32 on, high, high from entry 32 on.  VL 0 comes first,
 * and the others share.
 */
static void vlarb_default(uint32_t block, uint8_t out[NET_VLARB_BYTES])
{
	bool high = block == 3;

	memset(out, 0, NET_VLARB_BYTES);
	for (uint8_t vl = 0; (high || block == 1) && vl < VLARB_VLS; vl++) {
		out[2 * vl] = vl;
		out[2 * vl + 1] = high == !vl ? VLARB_WEIGHT : 0;
	}
}

void net_vlarb_get(const struct net *n, uint32_t row, uint32_t block, uint8_t *out)
{
	const uint8_t *own = n->ports[row].vlarb;

	if (own && block - 1 < VLARB_BLOCKS)
		memcpy(out, own + (size_t)(block - 1) * NET_VLARB_BYTES, NET_VLARB_BYTES);
	else
		vlarb_default(block, out);
}

int net_vlarb_set(struct net *n, uint32_t row, uint32_t block, const uint8_t *in)
{
	struct net_port *p = &n->ports[row];
	uint8_t now[NET_VLARB_BYTES];

	if (block - 1 >= VLARB_BLOCKS)
		return -ERANGE;
	net_vlarb_get(n, row, block, now);
	if (!memcmp(now, in, sizeof(now)))
		return 0;
	if (!p->vlarb) {
		p->vlarb = malloc((size_t)VLARB_BLOCKS * NET_VLARB_BYTES);
		if (!p->vlarb)
			return -ENOMEM;
		for (uint32_t b = 1; b <= VLARB_BLOCKS; b++)
			vlarb_default(b, p->vlarb + (size_t)(b - 1) * NET_VLARB_BYTES);
	}
	memcpy(p->vlarb + (size_t)(block - 1) * NET_VLARB_BYTES, in, NET_VLARB_BYTES);
	return 0;
}
