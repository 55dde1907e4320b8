/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a datagram goes, and whether it waits for room there. */
#pragma once

#include "adapter/qp/path.h"
#include "adapter/qp/qp.h"
#include "adapter/qp/send_wqe.h"

/* After this many datagrams in a row to one process, the QP counts as sending to it alone. */
#define DATAGRAMS_AROUND 256u

/* Takes a datagram's address from its request. */
static inline void datagram_address(const struct qp *qp, const struct send_wqe *w,
				    struct path *path, struct pkt *pkt)
{
	uint32_t qkey = (uint32_t)(be64_get(w->av.dc_key_or_qkey) >> 32);

	path_from_av(qp->adapter, &w->av, path);
	path->pkey = qp->pkey;
	path->mtu = (uint8_t)ib_mtu_for((uint32_t)w->len);
	pkt->path = path;
	pkt->dqpn = be32_get(w->av.dqp_dct) & IB_QPN_MASK;
	/* A Q_Key with its top bit set stands for the QP's own (IBTA 10.2.5). */
	pkt->qkey = qkey & 0x80000000u ? qp->attr.qkey : qkey;
}

/*
 * True if the QP sends to several processes.  Then no datagram waits for room at one of them,
 * because that would delay the others; a sole receiver may take its time.
 */
static inline bool datagrams_go_around(struct requester *req, uint32_t dqpn)
{
	uint32_t chunk = dqpn >> REGISTRY_CHUNK_SHIFT;

	if (unlikely(chunk != req->last_chunk)) {
		if (req->last_chunk)
			req->around = DATAGRAMS_AROUND;
		req->last_chunk = chunk;
	} else if (unlikely(req->around)) {
		req->around--;
	}
	return req->around;
}
