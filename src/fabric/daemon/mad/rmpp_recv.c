// SPDX-License-Identifier: BSD-2-Clause
/* Finds the message that a packet belongs to; see rmpp_recv.h. */
#include <string.h>

#include "fabric/daemon/mad/rmpp_recv.h"

struct rmpp_recv **rmpp_recv_bucket(const struct mad_fabric *f, const uint8_t *mad)
{
	return &f->receives[mad_get64(mad, MAD_AT_TID) * 0x9e3779b97f4a7c15ull >> 52];
}

static bool recv_is_of(const struct rmpp_recv *r, const struct mad_agent *a,
		       const struct mad_packet *p)
{
	const uint8_t *had = r->first.mad, *has = p->mad;

	return r->agent == a && r->first.sqpn == p->sqpn && r->first.slid == p->slid &&
	       r->first.grh == p->grh && !memcmp(&r->first.sgid, &p->sgid, sizeof(p->sgid)) &&
	       !memcmp(&had[MAD_AT_TID], &has[MAD_AT_TID], 8) &&
	       !memcmp(&had[MAD_AT_CLASS], &has[MAD_AT_CLASS], 3);
}

struct rmpp_recv *rmpp_recv_find(struct mad_agent *a, const struct mad_packet *p)
{
	struct rmpp_recv *r = a->fabric->receives ? *rmpp_recv_bucket(a->fabric, p->mad) : NULL;

	while (r && !recv_is_of(r, a, p))
		r = r->hash_next;
	return r;
}

/* ---- the direction turns (IBTA 13.6.6.3) ---- */

void rmpp_recv_turned(struct mad_agent *a, const struct mad_packet *p)
{
	struct rmpp_recv *r = rmpp_recv_find(a, p);

	if (r && r->part.complete)
		r->answer_window = mad_get32(p->mad, MAD_AT_RMPP_PAYLOAD);
}

/* Compares what both directions have in common, because the answer's packet is not there yet. */
static bool recv_is_asked(const struct rmpp_recv *r, const struct mad_send *answer)
{
	const uint8_t *had = r->first.mad, *has = answer->mad;

	return r->first.slid == answer->to.lid && !(had[MAD_AT_METHOD] & MAD_RESPONSE) &&
	       !memcmp(&had[MAD_AT_TID], &has[MAD_AT_TID], 8) &&
	       !memcmp(&had[MAD_AT_CLASS], &has[MAD_AT_CLASS], 2);
}

uint32_t rmpp_recv_window(const struct mad_send *answer)
{
	const struct mad_agent *a = answer->agent;
	struct rmpp_recv *r =
		a->fabric->receives ? *rmpp_recv_bucket(a->fabric, answer->mad) : NULL;

	if (!(answer->mad[MAD_AT_METHOD] & MAD_RESPONSE))
		return 1;
	while (r && (r->agent != a || !recv_is_asked(r, answer)))
		r = r->hash_next;
	/* A window of nothing would never open, so it is 1. */
	return r && r->answer_window ? r->answer_window : 1;
}
