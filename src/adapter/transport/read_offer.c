// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/transport/read_offer.h"

#include "adapter/bypass/bypass.h"

/* A shorter answer fits into any channel. */
#define OFFER_MIN_BYTES 8192u

void read_offer_places(const struct qp *qp, struct send_op *op, const struct runs *runs,
		       struct pkt *pkt)
{
	bool offer = !op->offered && !op->read_bytes && op->len >= OFFER_MIN_BYTES &&
		     qp_is_reliable(qp) && !bypass_observed(qp);

	for (uint32_t i = 0; offer && i < runs->n; i++)
		offer = runs->key[i] && runs->run[i].addr != RUN_DISCARD;
	if (!offer)
		return;
	op->offered = true;
	pkt->runs = runs->run;
	pkt->nruns = runs->n;
	pkt->run_keys = runs->key;
}
