// SPDX-License-Identifier: BSD-2-Clause
/*
 * See raw.h.  Code puts a frame together in one piece, on the stack, because segmentation and
 * checksums change it and steering reads it.
 */
#include "adapter/ethernet/raw.h"

#include <string.h>

#include "adapter/ethernet/egress.h"
#include "adapter/ethernet/ethernet.h"
#include "adapter/frame/frame.h"
#include "adapter/ste/tunnel.h"
#include "prm/wqe.h"
#include "usermem/usermem.h"
#include "wire/payload.h"

/* ---- sending ---- */

/* The checksums of a frame or datagram within a tunnel. */
static void fill_inner_checksums(uint8_t *frame, const struct ste_frame *outer, uint8_t flags)
{
	struct ste_frame inside;
	struct ste_tunnel t;

	if (!ste_tunnel_find(outer, &t) || !ste_tunnel_inside(outer, &t, &inside))
		return;
	if (flags & WQE_ETH_L3_INNER_CSUM)
		frame_fill_l3_checksum(frame, &inside.at);
	if (flags & WQE_ETH_L4_INNER_CSUM)
		frame_fill_l4_checksum(frame, inside.len, &inside.key, &inside.at);
}

static void fill_checksums(uint8_t *frame, uint32_t bytes, uint8_t flags)
{
	struct ste_frame f = {.bytes = frame, .len = bytes};

	if (!frame_parse(frame, min_u32(bytes, FRAME_HEADERS_MAX), bytes, &f.key, &f.at))
		return;
	/* The outer sum is over the inner one, so that comes first. */
	if (flags & (WQE_ETH_L3_INNER_CSUM | WQE_ETH_L4_INNER_CSUM))
		fill_inner_checksums(frame, &f, flags);
	if (flags & WQE_ETH_L3_CSUM)
		frame_fill_l3_checksum(frame, &f.at);
	if (flags & WQE_ETH_L4_CSUM)
		frame_fill_l4_checksum(frame, bytes, &f.key, &f.at);
}

static enum raw_verdict send_frame(struct qp *qp, uint8_t *frame, uint32_t bytes)
{
	const struct ethernet *e = qp->adapter->ethernet;

	if (unlikely(steering_any(&e->rules[FLOW_NIC_TX]) || steering_any(&e->rules[FLOW_FDB])))
		return egress_send(qp, frame, bytes);
	return frame_to_wire(qp->adapter, qp->qpn, frame, bytes);
}

/* Copies payload bytes [off, off + n) of the request behind the header. */
static bool raw_gather(struct qp *qp, const struct send_wqe *w, uint64_t off, uint32_t n,
		       uint8_t *to)
{
	struct run dst = {to, n};
	struct runs src;

	runs_begin(&src);
	return send_wqe_runs(qp->adapter, w, qp->create.pdn, 0, off, n, &src) == MKEY_OK &&
	       (!n || usermem_pull(&dst, 1, src.run, src.n));
}

/* How many bytes of payload the frame that begins at this offset has. */
static uint64_t raw_payload(const struct send_wqe *w, uint64_t off)
{
	if (w->opcode == WQE_OP_TSO)
		return min_u64(w->len - off, w->eth_mss);
	if (w->opcode != WQE_OP_ENHANCED_MPSW)
		return w->len - off;
	for (uint32_t i = 0; i < w->nsegs; i++) {
		if (!off)
			return w->seg[i].len;
		off -= min_u64(off, w->seg[i].len);
	}
	return 0;
}

enum raw_verdict raw_send(struct qp *qp, const struct send_wqe *w, uint64_t *off)
{
	bool tso = w->opcode == WQE_OP_TSO;
	uint8_t frame[FRAME_MAX];

	do {
		uint64_t payload = raw_payload(w, *off);
		uint32_t n = (uint32_t)min_u64(payload, FRAME_MAX + 1);
		uint32_t bytes = w->eth_header_len + n;
		enum raw_verdict v;

		if (bytes < FRAME_MIN || bytes > FRAME_MAX)
			return RAW_BAD_LENGTH;
		memcpy(frame, w->eth_header, w->eth_header_len);
		if (!raw_gather(qp, w, *off, n, frame + w->eth_header_len))
			return RAW_BAD_KEY;
		if (tso &&
		    !frame_segment(frame, bytes, w->eth_header_len, (uint32_t)(*off / w->eth_mss),
				   (uint32_t)*off, *off + n == w->len))
			return RAW_BAD_WQE;
		if (w->eth_flags & WQE_ETH_CSUM)
			fill_checksums(frame, bytes, w->eth_flags);
		v = send_frame(qp, frame, bytes);
		if (v != RAW_SENT)
			return v;
		*off += n;
	} while (*off < w->len);
	return RAW_SENT;
}
