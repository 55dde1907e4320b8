// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/transport/read_offer.h"

#include "adapter/bypass/bypass.h"

/* Shorter answers make no offer, because they fit into any channel. */
#define OFFER_MIN_BYTES 8192u

/* ---- which answers go to the same places ---- */

static bool places_are_awaited(const struct qp *qp, const struct answer_places *p)
{
	return (int32_t)(p->op - atomic_load(&qp->comp.head)) >= 0 && p->from < p->end;
}

/* The request's own entry, or one that nobody needs any more.  NULL: there is none, because more
 * answers are outstanding than a program can ask for by the verbs. */
static struct answer_places *places_for(struct qp *qp, uint32_t op)
{
	struct answer_places *free = NULL;

	for (uint32_t i = 0; i < array_size(qp->req.places); i++) {
		struct answer_places *p = &qp->req.places[i];

		if (p->op == op)
			return p;
		if (!places_are_awaited(qp, p))
			free = p;
	}
	return free;
}

static struct answer_places places_of(uint32_t op, const struct runs *runs)
{
	struct answer_places p = {.op = op, .from = UINTPTR_MAX};

	for (uint32_t i = 0; i < runs->n; i++) {
		uintptr_t at = (uintptr_t)runs->run[i].addr;

		if (runs->run[i].addr == RUN_DISCARD)
			continue;
		p.from = min_u64(p.from, at);
		p.end = max_u64(p.end, at + runs->run[i].len);
	}
	return p;
}

void read_note_places(struct qp *qp, const struct runs *runs)
{
	struct answer_places *p = places_for(qp, qp->req.cur);

	if (likely(p && runs))
		*p = places_of(qp->req.cur, runs);
	else
		*(p ? p : qp->req.places) = (struct answer_places){qp->req.cur, 0, UINTPTR_MAX};
}

/*
 * True if no other answer may go to these places.  Answers reach memory in their order.  An answer
 * that is put into its places would overtake those in the channel; so it goes through the channel
 * too if one of them may share a place with it.
 */
static bool places_are_its_own(const struct qp *qp, const struct runs *runs)
{
	const struct answer_places own = places_of(qp->req.cur, runs);

	for (uint32_t i = 0; i < array_size(qp->req.places); i++) {
		const struct answer_places *p = &qp->req.places[i];

		if (p->op != own.op && places_are_awaited(qp, p) && p->from < own.end &&
		    own.from < p->end)
			return false;
	}
	return true;
}

/* ---- offers ---- */

void read_offer_places(const struct qp *qp, struct send_op *op, const struct runs *runs,
		       struct pkt *pkt)
{
	bool offer = !op->asked && op->len >= OFFER_MIN_BYTES && op->len <= READ_PLACE_MAX_BYTES &&
		     qp_is_reliable(qp) && !bypass_observed(qp);

	for (uint32_t i = 0; offer && i < runs->n; i++)
		offer = runs->key[i] && runs->run[i].addr != RUN_DISCARD;
	if (!offer || !places_are_its_own(qp, runs))
		return;
	op->offered = true;
	pkt->runs = runs->run;
	pkt->nruns = runs->n;
	pkt->run_keys = runs->key;
}
