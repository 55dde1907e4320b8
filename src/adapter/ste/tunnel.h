/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames within frames: VXLAN (RFC 7348), VXLAN-GPE, Geneve (RFC 8926), GRE of versions 0 and 1 and
 * NVGRE (RFC 2784, 2890, 2637, 7637), IP in IP.  All functions are pure functions on bytes.
 */
#pragma once

#include "adapter/ste/tag.h"

enum { GRE_CHECKSUM = 0x80, GRE_KEY = 0x20, GRE_SEQUENCE = 0x10 }; /* of the first byte */

struct ste_tunnel {
	uint32_t header; /* offset of the tunnel's own header */
	uint32_t inner;	 /* where the inside begins */
	/* Type of the datagram inside; 0: the inside begins with an Ethernet header. */
	uint32_t type;
	bool vxlan; /* VXLAN of either kind, or Geneve: the second word has a network's number */
};

/* False: the frame is in no known tunnel, or the tunnel's header is cut off. */
bool ste_tunnel_find(const struct ste_frame *f, struct ste_tunnel *t) must_check;

/* Parses the headers inside as those of a frame with the same bytes.  False: there are none. */
bool ste_tunnel_inside(const struct ste_frame *f, const struct ste_tunnel *t,
		       struct ste_frame *inside) must_check;
